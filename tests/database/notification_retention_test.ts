// Rows past their retention are deleted in bounded batches, also by several replicas at once; an
// old notification that was not sent is kept and reported.
import assert from "node:assert/strict";
import { cleanNotification } from "../../notification/retention.ts";
import { openDatabase, type Transaction, transaction } from "../../shared/postgres/postgres.ts";
import { deleteBatchSize } from "../../shared/process/retention.ts";
import { withClient } from "../../tools/servers/asking.ts";
import { ask } from "../support/entitlement.ts";
import { freshPlace, settingsOf } from "../support/notification.ts";
import type { Place } from "../../tools/load/stage.ts";
import { collectingLog } from "../support/relays.ts";
import { metricOf } from "../support/metrics.ts";
import { startService } from "../../tools/servers/service_process.ts";
import { until } from "../../tools/servers/wait.ts";

const days = 30;
const ledgerTtlMs = 400 * 86_400_000;
const never = new AbortController().signal;

// now() does not change within a transaction, so a row can be exactly at the threshold.
Deno.test("a row exactly at the threshold stays, and one a microsecond older is deleted", async () => {
  await using place = await freshPlace();
  await using database = openPool(place);
  const ages = ["30 days -1 microsecond", "30 days", "30 days 1 microsecond"];
  const left = await transaction(database.pool, async (tx) => {
    for (const age of ages) {
      await tx.query(
        `insert into processed_events (event_id, processed_at)
         values (gen_random_uuid(), now() - $1::interval)`,
        [age],
      );
      for (const status of ["SENT", "FAILED", "PENDING", "PROCESSING"]) {
        await insertNotification(tx, status, age);
      }
    }
    await cleanNotification(tx, { days, ledgerTtlMs }, collectingLog().log, never);
    const events = await tx.query("select from processed_events");
    const notifications = await tx.query(
      `select status, count(*)::int as count from notifications group by status order by status`,
    );
    return { events: events.rows.length, notifications: notifications.rows };
  });
  assert.equal(left.events, 2);
  assert.deepEqual(left.notifications, [
    { status: "FAILED", count: 2 },
    { status: "PENDING", count: 3 },
    { status: "PROCESSING", count: 3 },
    { status: "SENT", count: 2 },
  ]);
});

Deno.test("a notification that is unfinished after that time is kept, logged as an error and counted", async () => {
  await using place = await freshPlace();
  await using database = openPool(place);
  await transaction(database.pool, async (tx) => {
    for (const status of ["SENT", "PENDING", "PROCESSING"]) {
      await insertNotification(tx, status, "31 days");
      await insertNotification(tx, status, "29 days");
    }
  });
  const { log, lines } = collectingLog();
  await cleanNotification(database.pool, { days, ledgerTtlMs }, log, never);
  assert.deepEqual(await tableSizes(place), { processed_events: 0, notifications: 5 });
  assert.ok(lines.includes("error 2 notifications are older than 30 days and not finished"));
  assert.equal(await metricOf("notification_overdue_current"), 2);
  await ask(place.ownerUrl, "delete from notifications where status <> 'SENT'");
  await cleanNotification(database.pool, { days, ledgerTtlMs }, log, never);
  assert.equal(await metricOf("notification_overdue_current"), 0);
});

Deno.test("two replicas share several batches, and each row is deleted by one of them", async () => {
  await using place = await freshPlace();
  await using first = openPool(place);
  await using second = openPool(place);
  const old = deleteBatchSize * 5 + 7;
  await ask(
    place.ownerUrl,
    `insert into processed_events (event_id, processed_at)
     select gen_random_uuid(), now() - interval '31 days' from generate_series(1, ${old})`,
  );
  await ask(
    place.ownerUrl,
    `insert into notifications
       (notification_id, event_id, user_id, aggregate_key, version, type, occurred_at, payload_json,
        status, sent_at, created_at)
     select gen_random_uuid(), gen_random_uuid(), 'ann', 'ann:sku', i, 'T', now(), '{}', 'SENT',
       now(), now() - interval '31 days'
     from generate_series(1, ${old}) as i`,
  );
  await insertFresh(place);
  const { log, lines } = collectingLog();
  await Promise.all(
    [first, second].map(({ pool }) => cleanNotification(pool, { days, ledgerTtlMs }, log, never)),
  );
  assert.deepEqual(await tableSizes(place), { processed_events: 1, notifications: 1 });
  const deleted = lines.flatMap((line) => {
    const [, events, notifications] = /deleted (\d+) .* (\d+)/.exec(line) ?? [];
    return events ? [[Number(events), Number(notifications)]] : [];
  });
  const sum = (of: 0 | 1) => deleted.reduce((total, one) => total + Number(one[of]), 0);
  assert.deepEqual([sum(0), sum(1)], [old, old]);
});

Deno.test("no statement deletes more than a batch, and a stop takes effect after one", async () => {
  await using place = await freshPlace();
  await using database = openPool(place);
  await ask(
    place.ownerUrl,
    `insert into processed_events (event_id, processed_at)
     select gen_random_uuid(), now() - interval '31 days'
     from generate_series(1, ${deleteBatchSize * 3})`,
  );
  await ask(
    place.ownerUrl,
    `create table deletions (rows bigint);
     grant insert on deletions to public;
     create function note() returns trigger language plpgsql security definer as $$
     begin
       insert into deletions select count(*) from gone;
       return null;
     end $$;
     create trigger note after delete on processed_events referencing old table as gone
       for each statement execute function note()`,
  );
  const stop = new AbortController();
  const cleaning = cleanNotification(
    database.pool,
    { days, ledgerTtlMs },
    collectingLog().log,
    stop.signal,
  );
  stop.abort();
  await cleaning;
  assert.equal((await tableSizes(place)).processed_events, deleteBatchSize * 2);
  await cleanNotification(database.pool, { days, ledgerTtlMs }, collectingLog().log, never);
  const batches = await ask<{ rows: number }>(
    place.ownerUrl,
    "select rows::int from deletions where rows > 0",
  );
  assert.deepEqual(batches.map(({ rows }) => rows), Array(3).fill(deleteBatchSize));
});

Deno.test("the service cleans up at its start, with its own privileges", async () => {
  await using place = await freshPlace();
  await using database = openPool(place);
  await transaction(database.pool, (tx) => insertNotification(tx, "SENT", "31 days"));
  await insertFresh(place);
  await using service = await startService("notification", settingsOf(place));
  await until("the old one is gone", async () => (await tableSizes(place)).notifications === 1);
  await until(
    "it is reported",
    () => service.log.some(({ message }) => /^Retention del/.test(message)),
  );
  assert.deepEqual(service.log.filter(({ level }) => level === "error"), []);
});

Deno.test("a locked row does not delay the others, and is not overdue because of that", async () => {
  await using place = await freshPlace();
  await using database = openPool(place);
  await transaction(database.pool, async (tx) => {
    for (let i = 0; i < 2; i++) {
      await insertNotification(tx, "SENT", "31 days");
      await tx.query(
        `insert into processed_events (event_id, processed_at)
         values (gen_random_uuid(), now() - interval '31 days')`,
      );
    }
  });
  const { log, lines } = collectingLog();
  await withClient(place.ownerUrl, async (holder) => {
    await holder.query("begin");
    for (const table of ["notifications", "processed_events"]) {
      await holder.query(`select from ${table} limit 1 for update`);
    }
    await cleanNotification(database.pool, { days, ledgerTtlMs }, log, never);
    await holder.query("commit");
  });
  assert.deepEqual(await tableSizes(place), { processed_events: 1, notifications: 1 });
  assert.deepEqual(lines.filter((line) => line.startsWith("error")), []);
  assert.equal(await metricOf("notification_overdue_current"), 0);
});

function openPool({ serviceUrl }: Place) {
  const pool = openDatabase(serviceUrl, "retention");
  return { pool, [Symbol.asyncDispose]: () => pool.end() };
}

async function insertNotification(tx: Transaction, status: string, age: string): Promise<void> {
  await tx.query(
    `insert into notifications
       (notification_id, event_id, user_id, aggregate_key, version, type, occurred_at, payload_json,
        status, sent_at, created_at, lease_until, next_retry_at)
     values (gen_random_uuid(), gen_random_uuid(), 'ann', 'ann:sku', 1, 'T', now(), '{}',
        $1, case $1 when 'SENT' then now() end, now() - $2::interval, now() + interval '1 day',
        now() + interval '1 day')`,
    [status, age],
  );
}

async function insertFresh({ ownerUrl }: Place): Promise<void> {
  await ask(
    ownerUrl,
    `insert into processed_events (event_id) values (gen_random_uuid());
     insert into notifications
       (notification_id, event_id, user_id, aggregate_key, type, occurred_at, payload_json, status,
        sent_at)
     values (gen_random_uuid(), gen_random_uuid(), 'bob', 'bob:sku', 'T', now(), '{}', 'SENT', now())`,
  );
}

async function tableSizes(
  { ownerUrl }: Place,
): Promise<{ processed_events: number; notifications: number }> {
  const [sizes] = await ask<{ processed_events: number; notifications: number }>(
    ownerUrl,
    `select (select count(*)::int from processed_events) as processed_events,
       (select count(*)::int from notifications) as notifications`,
  );
  return sizes as { processed_events: number; notifications: number };
}
