// The statements that receive events, row by row: which row waits for a predecessor, for how long,
// and what ends the wait.
import assert from "node:assert/strict";
import { notifications } from "../../notification/deliveries.ts";
import { readNotification } from "../../notification/notification.ts";
import { receiveEvents } from "../../notification/receive_events.ts";
import { ask, withClient } from "../../tools/servers/asking.ts";
import { bodyOf, type Event, eventOf } from "../support/events.ts";
import { waitingForLocks } from "../support/locks.ts";
import { type Opened, openFresh } from "../support/databases.ts";
import { until } from "../../tools/servers/wait.ts";

const waitMs = 90_000;

Deno.test("a version waits for its direct predecessor, as long as the setting says", async () => {
  await using tables = await openFresh("notification");
  await receive(tables, [eventOf({ version: 1 })]);
  await receive(tables, [eventOf({ version: 3 })]);
  assert.deepEqual(await waitsIn(tables), [[1, false, null], [3, true, 90]]);
  await receive(tables, [eventOf({ version: 2 })]);
  assert.deepEqual(await waitsIn(tables), [[1, false, null], [2, false, null], [3, false, null]]);
});

Deno.test("a version whose predecessor was sent is handed over at once", async () => {
  await using tables = await openFresh("notification");
  await receive(tables, [eventOf({ version: 1 })]);
  const claimed = await notifications.claim(tables.database, { worker: "test", leaseMs: 1_000 }, 1);
  const result = { sentAt: performance.now() };
  await notifications.settle(
    tables.database,
    claimed.map((row) => ({ row, kind: "done" as const, result })),
  );
  assert.equal((await receive(tables, [eventOf({ version: 2 })])).leased.length, 1);
});

Deno.test("a version that is received with its predecessor is handed over with it", async () => {
  await using tables = await openFresh("notification");
  const { leased } = await receive(tables, [eventOf({ version: 2 }), eventOf({ version: 1 })]);
  assert.equal(leased.length, 2);
});

Deno.test("a duplicate of its predecessor does not make a row due that waits for its retry", async () => {
  await using tables = await openFresh("notification");
  const first = eventOf({ version: 1 });
  await receive(tables, [first, eventOf({ version: 2 })]);
  await ask(
    tables.ownerUrl,
    "update notifications set next_retry_at = now() + interval '1 hour' where version = 2",
  );
  // Another row waits, because otherwise the statement looks for no waits.
  await receive(tables, [first, eventOf({ userId: "other", version: 7 })]);
  const [row] = await ask<{ is_later: boolean }>(
    tables.ownerUrl,
    `select next_retry_at > now() + interval '50 minutes' as is_later
     from notifications where user_id = 'ann' and version = 2`,
  );
  assert.equal(row?.is_later, true);
});

Deno.test("rows whose wait ends are locked in ascending order of their ids", async () => {
  await using tables = await openFresh("notification");
  const users = Array.from({ length: 7 }, (_, i) => `user-${i}`);
  await receive(tables, users.map((userId) => eventOf({ userId, version: 2 })));
  const rows = await ask<{ id: string }>(
    tables.ownerUrl,
    "select notification_id as id from notifications order by notification_id",
  );
  const ids = rows.map(({ id }) => id);
  await withClient(tables.ownerUrl, async (holder) => {
    await holder.query("begin");
    await holder.query("select from notifications where notification_id = $1 for update", [ids[3]]);
    const receiving = receive(tables, users.map((userId) => eventOf({ userId, version: 1 })));
    await until("it waits", async () => await waitingForLocks(tables.ownerUrl) === 1);
    const free = await ask<{ id: string }>(
      tables.ownerUrl,
      "select notification_id as id from notifications where version = 2 for update skip locked",
    );
    assert.deepEqual(free.map(({ id }) => id).sort(), ids.slice(4));
    await holder.query("commit");
    await receiving;
  });
});

Deno.test("sent_at is the time of the claim plus the time until the channel accepted the notification", async () => {
  await using tables = await openFresh("notification");
  await receive(tables, [eventOf()]);
  const [row] = await notifications.claim(tables.database, { worker: "test", leaseMs: 1_000 }, 1);
  assert.ok(row);
  const timeOf = async (column: string) => {
    const [found] = await ask<{ at: Date }>(
      tables.ownerUrl,
      `select ${column} as at from notifications`,
    );
    return Number(found?.at);
  };
  const claimedAt = await timeOf("locked_at");
  const result = { sentAt: row.claimedAt + 250 };
  await notifications.settle(tables.database, [{ row, kind: "done", result }]);
  const afterMs = await timeOf("sent_at") - claimedAt;
  assert.ok(Math.abs(afterMs - 250) <= 1, `${afterMs}`);
});

function receive({ database }: Opened, events: Event[]) {
  const lease = { worker: "test", leaseMs: 1, token: crypto.randomUUID() };
  const received = events.map((event) => readNotification(bodyOf(event)));
  return receiveEvents(database, received, { predecessorWaitMs: waitMs }, lease);
}

/** For each version: whether it awaits its predecessor, and for how many seconds. */
async function waitsIn({ ownerUrl }: Opened): Promise<unknown[]> {
  const rows = await ask<{ version: number; awaits: boolean; seconds: number | null }>(
    ownerUrl,
    `select version::int, awaits_predecessor as awaits,
       round(extract(epoch from next_retry_at - created_at))::int as seconds
     from notifications
     order by version`,
  );
  return rows.map(({ version, awaits, seconds }) => [version, awaits, seconds]);
}
