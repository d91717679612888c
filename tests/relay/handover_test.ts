// Rows that are written as already leased, to the worker of the process that writes them, are as
// safe as rows that were claimed, and worked on in the same order.
import assert from "node:assert/strict";
import { outbox } from "../../entitlement/outbox.ts";
import type { OutboxRow } from "../../shared/outbox/outbox_table.ts";
import { notifications } from "../../notification/deliveries.ts";
import { readNotification } from "../../notification/notification.ts";
import { receiveEvents } from "../../notification/receive_events.ts";
import type { Database } from "../../shared/postgres/postgres.ts";
import { changeOf, commitChanges } from "../changes/change.ts";
import { openFresh } from "../support/databases.ts";
import { ask } from "../support/entitlement.ts";
import { bodyOf, eventOf } from "../support/events.ts";
import { publishAll } from "../support/outbox.ts";

const lease = (ms = 30_000) => ({ worker: "test", leaseMs: ms, token: crypto.randomUUID() });
const claiming = { worker: "other", leaseMs: 30_000 };

Deno.test("an event is handed over as a claim would have found it, and no claim finds it", async () => {
  await using place = await openFresh("entitlement");
  const { database } = place;
  const { leased, othersWait } = await commitChanges(database, [changeOf()], options, lease());
  assert.equal(othersWait, false);
  assert.deepEqual(await outbox.claim(database, claiming, 10), []);
  await outbox.settle(database, leased.map((row) => ({ row, kind: "released" })));
  const claimed = await outbox.claim(database, claiming, 10);
  assert.deepEqual(claimed.map(factsOf), leased.map(factsOf));
});

Deno.test("an event behind an unfinished one of its key is not leased, and is claimed after that one", async () => {
  await using place = await openFresh("entitlement");
  const { database } = place;
  const first = await commitChanges(database, [changeOf()], options, lease());
  const second = await commitChanges(
    database,
    [changeOf({ action: "REVOKE" }), changeOf({ userId: "bob" })],
    options,
    lease(),
  );
  assert.deepEqual(second.leased.map(({ key }) => key), ["bob:book"]);
  assert.equal(second.othersWait, true);
  assert.deepEqual(await outbox.claim(database, claiming, 10), []);
  await publishAll(database, first.leased);
  const claimed = await outbox.claim(database, claiming, 10);
  assert.deepEqual(claimed.map(versionOf), [2]);
});

Deno.test("an event that was handed over to a process that died is taken over after its lease", async () => {
  await using place = await openFresh("entitlement");
  const { database } = place;
  const { leased } = await commitChanges(database, [changeOf()], options, lease(1));
  const [taken] = await outbox.claim(database, claiming, 10);
  assert.equal(taken?.takenOver, true);
  const late = await outbox.settle(database, leased.map((row) => ({ row, kind: "released" })));
  assert.equal(late.size, 0);
});

Deno.test("without a lease, and for a refusal or a replay, nothing is handed over", async () => {
  await using place = await openFresh("entitlement");
  const { database } = place;
  const pending = await commitChanges(database, [changeOf({ idempotencyKey: "key-1" })], options);
  assert.deepEqual(pending.leased, []);
  assert.equal(pending.othersWait, true);
  const rows = await ask(place.ownerUrl, "select status, locked_at from outbox_events");
  assert.deepEqual(rows, [{ status: "PENDING", locked_at: null }]);
  for (const idempotencyKey of ["key-1", "key-2"]) {
    const { leased, othersWait } = await commitChanges(
      database,
      [changeOf({ idempotencyKey })],
      options,
      lease(),
    );
    assert.deepEqual([leased, othersWait], [[], false]);
  }
});

Deno.test("a notification is handed over as a claim would have found it", async () => {
  await using place = await openFresh("notification");
  const { database } = place;
  const { leased, othersWait } = await receive(database, [{ user: "ann", version: 1 }]);
  assert.equal(othersWait, false);
  assert.deepEqual(await notifications.claim(database, claiming, 10), []);
  await notifications.settle(database, leased.map((row) => ({ row, kind: "released" })));
  const claimed = await notifications.claim(database, claiming, 10);
  assert.deepEqual(claimed.map(factsOf), leased.map(factsOf));
});

Deno.test("events of one key that arrive together are handed over in the order of their versions", async () => {
  await using place = await openFresh("notification");
  const together = [3, 1, 2].map((version) => ({ user: "ann", version }));
  const { leased } = await receive(place.database, together);
  assert.deepEqual(leased.map(({ content }) => content.payload["version"]), [1, 2, 3]);
});

Deno.test("a notification that awaits its predecessor is not leased, and neither are its successors", async () => {
  await using place = await openFresh("notification");
  const { database, ownerUrl } = place;
  const early = await receive(database, [
    { user: "ann", version: 2 },
    { user: "ann", version: 3 },
    { user: "bob", version: 1 },
  ]);
  assert.deepEqual(early.leased.map(({ key }) => key), ["bob:book"]);
  assert.equal(early.othersWait, true);
  const late = await receive(database, [{ user: "ann", version: 1 }]);
  assert.deepEqual(late.leased.map(({ content }) => content.payload["version"]), [1]);
  assert.equal(late.othersWait, true, "the wait of version 2 is over");
  const rows = await ask<{ version: string; status: string }>(
    ownerUrl,
    "select version, status from notifications where user_id = 'ann' order by version",
  );
  assert.deepEqual(rows.map(({ version, status }) => [Number(version), status]), [
    [1, "PROCESSING"],
    [2, "PENDING"],
    [3, "PENDING"],
  ]);
});

Deno.test("a duplicate is not handed over again", async () => {
  await using place = await openFresh("notification");
  const event = readNotification(bodyOf(eventOf()));
  await receiveEvents(place.database, [event], { predecessorWaitMs: 30_000 }, lease());
  const again = await receiveEvents(
    place.database,
    [event],
    { predecessorWaitMs: 30_000 },
    lease(),
  );
  assert.deepEqual(again, { result: [false], leased: [], othersWait: false });
});

const options = { idempotencyTtlMs: 60_000 };

function receive(database: Database, events: { user: string; version: number }[]) {
  const received = events.map(({ user, version }) =>
    readNotification(bodyOf(eventOf({ userId: user, version })))
  );
  return receiveEvents(database, received, { predecessorWaitMs: 30_000 }, lease());
}

function versionOf({ content }: OutboxRow): unknown {
  return (content.payload as Record<string, unknown>)["version"];
}

/** The fields of a row that the work on it may depend on. */
function factsOf(row: { id: string; key: string; attempts: number; content: object }) {
  const { id, key, attempts } = row;
  const content = row.content as Record<string, unknown>;
  const { event_type, traceparent, event_id, user_id, type, payload } = content;
  return { id, key, attempts, event_type, traceparent, event_id, user_id, type, payload };
}
