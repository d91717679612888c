// Keys of the form before migration 0007: in rows that are unfinished while it is applied, in rows
// that replicas of the previous release write afterwards, and in finished rows that are republished
// later.
import assert from "node:assert/strict";
import { Hono } from "hono";
import { deadEvents } from "../../entitlement/operators/dead_events.ts";
import { outbox } from "../../entitlement/outbox.ts";
import { republishUnreceived } from "../../entitlement/reconciliation/republish_unreceived.ts";
import { republishLost } from "../../shared/outbox/republish_lost.ts";
import { replay } from "../../entitlement/operators/replay.ts";
import { aggregateKeyOf } from "../../proto/entitlement/aggregate_key.ts";
import { newOperation } from "../../shared/operators/operations.ts";
import { openDatabase } from "../../shared/postgres/postgres.ts";
import { Wakeup } from "../../shared/process/signals.ts";
import { ask } from "../../tools/servers/asking.ts";
import { collecting, receive, startDelivery, untilAllAre } from "../support/deliveries.ts";
import { eventOf } from "../support/events.ts";
import { databaseAt, migrateWith } from "../database/migrated.ts";
import { collectingLog } from "../support/relays.ts";

const user_id = "tenant:ann";
const newKey = aggregateKeyOf(user_id, "book");
const lease = { worker: "test", leaseMs: 30_000 };
const operation = () => newOperation({ who: "kim", reason: "an upgrade" });

Deno.test("events of a key are published in order over the upgrade, by replicas of both releases", async () => {
  await using place = await databaseAt("entitlement", 6);
  await insertOldEvent(place.ownerUrl, { version: 1 });
  await insertOldEvent(place.ownerUrl, { version: 1, user: "bob" });
  await migrateWith("entitlement", place, {});
  await insertOldEvent(place.serviceUrl, { version: 2, leased: true });
  await insertOldEvent(place.serviceUrl, { version: 1, user: "100%" });
  await insertOldEvent(place.serviceUrl, { version: 1, user: "cleo", leased: true });
  assert.deepEqual(await eventsIn(place.ownerUrl), [
    { key: newKey, version: 1, status: "PENDING" },
    { key: "bob:book", version: 1, status: "PENDING" },
    { key: newKey, version: 2, status: "PENDING" },
    { key: "100%25:book", version: 1, status: "PENDING" },
    { key: "cleo:book", version: 1, status: "IN_FLIGHT" },
  ]);
  const database = openDatabase(place.serviceUrl, "test");
  const [first] = await outbox.claim(database, lease, 1);
  assert.equal(first?.key, newKey);
  const others = await outbox.claim(database, lease, 10);
  assert.deepEqual(others.map(({ key }) => key), ["bob:book", "100%25:book"], "version 2 waits");
  await database.end();
});

Deno.test("an event that is republished gets its new key, whatever the cause", async (t) => {
  await using place = await databaseAt("entitlement", 6);
  await migrateWith("entitlement", place, {});
  const database = openDatabase(place.serviceUrl, "test");
  const getsNewKey = async (status: string, republish: (event_id: string) => Promise<unknown>) => {
    await ask(place.ownerUrl, "alter table outbox_events disable trigger key_of_release_before");
    const event_id = await insertOldEvent(place.ownerUrl, { version: 1, status });
    await ask(place.ownerUrl, "alter table outbox_events enable trigger key_of_release_before");
    await republish(event_id);
    const pending = { key: newKey, version: 1, status: "PENDING" };
    assert.deepEqual(await eventsIn(place.ownerUrl), [pending]);
    await ask(place.ownerUrl, "delete from outbox_events");
  };
  await t.step("sent back", () =>
    getsNewKey("FAILED", async (event_id) => {
      const { sendBack } = deadEvents(database, new Wakeup());
      const dead = { layer: "outbox", id: event_id, event_id, error: "e", since: "", attempts: 1 };
      await sendBack([{ ...dead, age_seconds: 1, payload: {} }], operation());
    }));
  await t.step("lost", () =>
    getsNewKey("PUBLISHED", async () => {
      await ask(
        place.ownerUrl,
        `insert into stream_generations
         select generation, 's', 'now', '', 0 from generate_series(1, 2) as generation`,
      );
      await republishLost(database, outbox, collectingLog().log);
    }));
  await t.step("not received", () =>
    getsNewKey("PUBLISHED", async (event_id) => {
      const event = { event_id, user_id, stock_keeping_unit: "book", version: 1 };
      await republishUnreceived(database, [{ ...event, occurred_at: "now" }], operation());
    }));
  await t.step("replayed", () =>
    getsNewKey("PUBLISHED", async () => {
      const [from, to] = ["2020-01-01T00:00:00Z", new Date().toISOString()];
      const answer = await new Hono().post("/", replay(database, new Wakeup())).request("/", {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ from, to, who: "kim", reason: "an upgrade" }),
      });
      assert.equal(answer.status, 200, await answer.text());
    }));
  await database.end();
});

Deno.test("notifications of a key are sent in order over the upgrade", async () => {
  await using place = await databaseAt("notification", 6);
  await insertOldNotification(place.ownerUrl, { version: 1 });
  await migrateWith("notification", place, {});
  await insertOldNotification(place.serviceUrl, { version: 2, leased: true });
  await insertOldNotification(place.serviceUrl, { version: 1, user: "bob", leased: true });
  const rows = await ask(
    place.ownerUrl,
    `select aggregate_key as key, version::int, status from notifications
     order by aggregate_key desc, version`,
  );
  assert.deepEqual(rows, [
    { key: newKey, version: 1, status: "PENDING" },
    { key: newKey, version: 2, status: "PENDING" },
    { key: "bob:book", version: 1, status: "PROCESSING" },
  ]);
  await ask(place.ownerUrl, "delete from notifications where user_id = 'bob'");
  const { sent, send } = collecting();
  await using _delivery = startDelivery(place, send, { batchSize: 1 });
  await untilAllAre(place, "SENT");
  assert.deepEqual(sent.map(({ payload }) => payload["version"]), [1, 2]);
});

Deno.test("a version does not wait for one that was sent before the upgrade", async () => {
  await using place = await databaseAt("notification", 6);
  await insertOldNotification(place.ownerUrl, { version: 1, status: "SENT" });
  await migrateWith("notification", place, {});
  const { sent, send } = collecting();
  await using _delivery = startDelivery(place, send);
  await receive(place, [[eventOf({ userId: user_id, version: 2 })]], 3_600_000);
  await untilAllAre(place, "SENT");
  assert.deepEqual(sent.map(({ payload }) => payload["version"]), [2]);
});

interface OldRow {
  version: number;
  user?: string;
  status?: string;
  leased?: boolean; // handed over to the relay, or the delivery, of the same process
}

const leaseColumns = "status, locked_by, locked_at, lease_until, claim_token";
const leaseOf = ({ leased = false, status = "PENDING" }: OldRow, working: string) =>
  leased
    ? `'${working}', 'old', now(), now() + interval '1 hour', gen_random_uuid()`
    : `'${status}', null, null, null, null::uuid`;

/** Inserts a row as the previous release wrote it, with its form of the key. */
async function insertOldEvent(url: string, row: OldRow): Promise<string> {
  const { user = user_id, version, status } = row;
  const event_id = crypto.randomUUID();
  const payload = { event_id, user_id: user, stock_keeping_unit: "book", version };
  await ask(
    url,
    `insert into outbox_events
       (event_id, event_type, aggregate_key, payload, published_at, stream_generation, stream_seq,
        ${leaseColumns})
     select $1, 'EntitlementGranted', $2, $3, published_at, 1, 1, ${leaseOf(row, "IN_FLIGHT")}
     from (select case when $4 then now() end as published_at) as row`,
    [event_id, `${user}:book`, payload, status === "PUBLISHED"],
  );
  return event_id;
}

async function insertOldNotification(url: string, row: OldRow): Promise<void> {
  const { user = user_id, version } = row;
  const event_id = crypto.randomUUID();
  const payload = { event_id, user_id: user, stock_keeping_unit: "book", version };
  await ask(
    url,
    `insert into notifications
       (notification_id, event_id, user_id, aggregate_key, version, type, occurred_at, payload_json,
        sent_at, ${leaseColumns})
     select $1, $1, $2, $3, $4, 'EntitlementGranted', now(), $5, now(),
       ${leaseOf(row, "PROCESSING")}`,
    [event_id, user, `${user}:book`, version, payload],
  );
}

function eventsIn(ownerUrl: string): Promise<unknown[]> {
  return ask(
    ownerUrl,
    `select aggregate_key as key, (payload->>'version')::int as version, status
     from outbox_events
     order by created_at`,
  );
}
