// Between the check that finds an event missing and its republishing, somebody else may change it.
import assert from "node:assert/strict";
import { republishUnreceived } from "../../entitlement/reconciliation/republish_unreceived.ts";
import { newOperation } from "../../shared/operators/operations.ts";
import { openFresh, withClient } from "../support/databases.ts";
import { ask } from "../support/entitlement.ts";
import { waitingForLocks } from "../support/locks.ts";
import { insertEvents } from "../support/outbox.ts";
import { until } from "../../tools/servers/wait.ts";

const operation = { who: "reconciliation", reason: "not received" };
const states: [string, string][] = [
  ["PENDING", "next_retry_at = now() + interval '1 hour', attempt_count = 1"],
  [
    "IN_FLIGHT",
    "claim_token = gen_random_uuid(), locked_by = 'relay', locked_at = now(), lease_until = now()",
  ],
  ["FAILED", "last_error = 'too large', attempt_count = 10"],
];

for (const [status, columns] of states) {
  Deno.test(`an unreceived event that is ${status} by now stays as it is`, async () => {
    await using place = await openFresh("entitlement");
    const { ownerUrl } = place;
    const [id = ""] = await insertEvents(ownerUrl, [{ key: "ann:book", version: 1 }]);
    await ask(ownerUrl, `update outbox_events set status = '${status}', ${columns}`);
    await isAudited(ownerUrl, id);
    const before = await ask(ownerUrl, "select * from outbox_events");
    assert.deepEqual(
      await republishUnreceived(place.database, [missing(id)], newOperation(operation)),
      [],
    );
    assert.deepEqual(await ask(ownerUrl, "select * from outbox_events"), before);
    assert.deepEqual(await ask(ownerUrl, "select from outbox_attempts"), []);
    assert.deepEqual(await ask(ownerUrl, "select from operations"), []);
  });
}

Deno.test("concurrent attempts republish an unreceived event once", async () => {
  await using place = await openFresh("entitlement");
  const { ownerUrl, database } = place;
  const [published = "", deleted = ""] = await insertEvents(
    ownerUrl,
    ["book", "film"].map((sku) => ({ key: `ann:${sku}`, version: 1 })),
  );
  for (const id of [published, deleted]) await isAudited(ownerUrl, id);
  await ask(
    ownerUrl,
    "update outbox_events set status = 'PUBLISHED', published_at = now(), stream_seq = 1",
  );
  await ask(ownerUrl, "delete from outbox_events where event_id = $1", [deleted]);
  const events = [published, deleted].map(missing);
  const republished = await Promise.all(
    Array.from({ length: 6 }, () => republishUnreceived(database, events, newOperation(operation))),
  );
  assert.deepEqual(republished.flat().sort(), [published, deleted].sort());
  const rows = await ask<{ status: string }>(ownerUrl, "select status from outbox_events");
  assert.deepEqual(rows.map(({ status }) => status), ["PENDING", "PENDING"]);
});

Deno.test("an event that somebody else writes again at the same moment stays as it is", async () => {
  await using place = await openFresh("entitlement");
  const { ownerUrl, database } = place;
  const [id = ""] = await insertEvents(ownerUrl, [{ key: "ann:book", version: 1 }]);
  await isAudited(ownerUrl, id);
  await ask(
    ownerUrl,
    "update outbox_events set status = 'PUBLISHED', published_at = now(), stream_seq = 1",
  );
  const republishing = await withClient(ownerUrl, async (other) => {
    await ask(ownerUrl, "create table kept as select * from outbox_events");
    await ask(ownerUrl, "delete from outbox_events");
    await other.query("begin");
    await other.query(
      `insert into outbox_events (event_id, event_type, aggregate_key, payload, status, published_at)
       select event_id, event_type, aggregate_key, payload, status, published_at from kept`,
    );
    const republishing = republishUnreceived(database, [missing(id)], newOperation(operation));
    await until("it waits", async () => await waitingForLocks(ownerUrl) === 1);
    await other.query("commit");
    return await republishing;
  });
  assert.deepEqual(republishing, []);
  const rows = await ask<{ status: string }>(ownerUrl, "select status from outbox_events");
  assert.deepEqual(rows.map(({ status }) => status), ["PUBLISHED"]);
});

const occurred_at = "2026-11-02T03:04:05.000000Z";

function missing(event_id: string) {
  return { event_id, occurred_at, user_id: "ann", stock_keeping_unit: "book", version: 1 };
}

async function isAudited(ownerUrl: string, id: string): Promise<void> {
  await ask(
    ownerUrl,
    `insert into entitlement_audit (audit_id, occurred_at, user_id, stock_keeping_unit, action,
       source, source_id, request_id, detail)
     values ($1, $2, 'ann', 'book', 'GRANT', 's', 'p', 'k', '{"version": 1}')`,
    [id, occurred_at],
  );
}
