// The retention of the entitlement service deletes rows past their retention, and nothing else.
import assert from "node:assert/strict";
import { cleanEntitlement } from "../../entitlement/retention.ts";
import { type Database, openDatabase } from "../../shared/postgres/postgres.ts";
import { deleteBatchSize } from "../../shared/process/retention.ts";
import { withClient } from "../../tools/servers/asking.ts";
import { freshDatabase } from "../support/databases.ts";
import { ask } from "../support/entitlement.ts";
import { insertReservations } from "../support/points.ts";
import { insertEvents, manyEvents } from "../support/outbox.ts";
import { collectingLog } from "../support/relays.ts";

const day = 24 * 3_600_000;
const options = { publishedTtlMs: day, doneReservationsTtlMs: 30 * day, auditMonths: 13 };

Deno.test("an idempotency key is deleted when it has expired, and not before", async () => {
  await using place = await freshTables();
  await insertKeys(place.ownerUrl, "'expired-' || n", "now() - n * interval '1 second'", 3);
  await insertKeys(place.ownerUrl, "'valid-' || n", "now() + n * interval '1 minute'", 3);
  await clean(place.database);
  assert.deepEqual(await keysOf(place.ownerUrl), ["valid-1", "valid-2", "valid-3"]);
});

Deno.test("only events that were published a day ago are deleted from the outbox", async () => {
  await using place = await freshTables();
  await insertEvents(place.ownerUrl, manyEvents({ keys: 8, versions: 1 }));
  await ask(
    place.ownerUrl,
    `update outbox_events row
     set status = aged.status, published_at = now() - aged.age
     from (values
       (0, 'PUBLISHED', interval '24 hours'),
       (1, 'PUBLISHED', interval '30 days'),
       (2, 'PUBLISHED', interval '23 hours 59 minutes'),
       (3, 'PUBLISHED', interval '0'),
       (4, 'PENDING', interval '30 days'),
       (5, 'IN_FLIGHT', interval '30 days'),
       (6, 'FAILED', interval '30 days'),
       (7, 'FAILED', null)
     ) as aged (i, status, age)
     where row.aggregate_key = 'user-' || aged.i || ':sku'`,
  );
  await clean(place.database);
  const kept = await ask<{ aggregate_key: string }>(
    place.ownerUrl,
    "select aggregate_key from outbox_events order by aggregate_key",
  );
  assert.deepEqual(
    kept.map(({ aggregate_key }) => aggregate_key),
    [2, 3, 4, 5, 6, 7].map((i) => `user-${i}:sku`),
  );
});

Deno.test("only reservations that were done or cancelled long ago are deleted, with their attempts", async () => {
  await using place = await freshTables();
  const ids = await insertReservations(place.ownerUrl, {
    ...{ count: 8, users: 1, fromMs: 0, overMs: 0 },
  });
  await ask(
    place.ownerUrl,
    `update point_reservations reservation
     set status = aged.status, done_at = now() - aged.age, created_at = now() - interval '90 days',
       transaction_id = case aged.status when 'DONE' then gen_random_uuid() end
     from unnest($1::uuid[]) with ordinality as wanted (id, i)
     join (values
       (1, 'DONE', interval '30 days'),
       (2, 'CANCELLED', interval '31 days'),
       (3, 'DONE', interval '29 days 23 hours'),
       (4, 'CANCELLED', interval '0'),
       (5, 'PENDING', null),
       (6, 'PROCESSING', null),
       (7, 'FAILED', null)
     ) as aged (i, status, age) using (i)
     where reservation.id = wanted.id`,
    [ids],
  );
  await ask(
    place.ownerUrl,
    "insert into reservation_attempts (id, outcome) select id, 'RETRIED' from point_reservations",
  );
  const lines = await clean(place.database);
  assert.match(lines.join(), /and 2 reservations/);
  for (const table of ["point_reservations", "reservation_attempts"]) {
    const kept = await ask<{ id: string }>(place.ownerUrl, `select id from ${table}`);
    assert.deepEqual(kept.map(({ id }) => ids.indexOf(id)).sort(), [2, 3, 4, 5, 6, 7], table);
  }
});

Deno.test("two replicas delete old keys and events in batches, each row once, and pass over locked rows", async () => {
  await using place = await freshTables();
  const { ownerUrl, database } = place;
  const old = 3 * deleteBatchSize + 17;
  await insertKeys(ownerUrl, "'old-' || n", "now() - interval '1 hour'", old);
  await insertKeys(ownerUrl, "'valid-' || n", "now() + interval '1 hour'", 1);
  await ask(
    ownerUrl,
    `insert into outbox_events (event_id, event_type, aggregate_key, payload, status, published_at)
     select gen_random_uuid(), 'EntitlementGranted', 'old-' || n, '{}', 'PUBLISHED',
       now() - interval '2 days'
     from generate_series(1, ${old}) n`,
  );
  await countDeletes(ownerUrl);
  const lines = await withClient(ownerUrl, async (holder) => {
    await holder.query(
      `begin;
       select from idempotency_keys where idem_key = 'old-3' for update;
       select from outbox_events where aggregate_key = 'old-3' for update`,
    );
    return (await Promise.all([clean(database), clean(database)])).flat();
  });
  const found = lines.map((line) => /deleted (\d+) \D+ (\d+)/.exec(line));
  const sum = (column: 1 | 2) => found.reduce((sum, counts) => sum + Number(counts?.[column]), 0);
  assert.deepEqual([sum(1), sum(2)], [old - 1, old - 1]);
  assert.deepEqual(await keysOf(ownerUrl), ["old-3", "valid-1"]);
  assert.deepEqual(await ask(ownerUrl, "select aggregate_key from outbox_events"), [
    { aggregate_key: "old-3" },
  ]);
  assert.deepEqual(await ask(ownerUrl, "select max(rows) from deletes"), [
    { max: deleteBatchSize },
  ]);
});

Deno.test("audit partitions are made ahead of time, and dropped when they are too old", async () => {
  await using place = await freshTables();
  await ask(
    place.ownerUrl,
    `do $$
     declare month timestamptz := date_trunc('month', now(), 'UTC');
     begin
       execute format('drop table entitlement_audit_%s',
         to_char((month + interval '2 months') at time zone 'UTC', 'YYYY_MM'));
       for age in 12..15 loop
         execute format(
           'create table entitlement_audit_%s partition of entitlement_audit
              for values from (%L) to (%L)',
           to_char((month - make_interval(months => age)) at time zone 'UTC', 'YYYY_MM'),
           month - make_interval(months => age), month - make_interval(months => age - 1));
       end loop;
     end $$`,
  );
  await Promise.all([clean(place.database), clean(place.database)]);
  assert.deepEqual(await partitionAges(place.ownerUrl), [-3, -2, -1, 0, 12, 13]);
});

Deno.test("a warning is logged if the owner keeps the audit for longer than the setting, and not otherwise", async () => {
  await using place = await freshTables();
  const saidFor = async (months: number) => {
    await ask(place.ownerUrl, "update audit_retention set keep_months = $1", [months]);
    return (await clean(place.database)).filter((line) => line.includes("audit is kept"));
  };
  assert.deepEqual([await saidFor(12), await saidFor(13)], [[], []]);
  assert.equal((await saidFor(14)).length, 1);
});

interface Tables extends AsyncDisposable {
  ownerUrl: string;
  database: Database;
}

async function freshTables(): Promise<Tables> {
  const { ownerUrl, serviceUrl, drop } = await freshDatabase("entitlement");
  const database = openDatabase(serviceUrl, "retention");
  const close = async () => {
    await database.end();
    await drop();
  };
  return { ownerUrl, database, [Symbol.asyncDispose]: close };
}

// Does what the retention job of a replica does every hour, and returns its log.
async function clean(database: Database): Promise<string[]> {
  const { log, lines } = collectingLog();
  await cleanEntitlement(database, options, log, new AbortController().signal);
  return lines;
}

async function insertKeys(ownerUrl: string, key: string, expiresAt: string, count: number) {
  await ask(
    ownerUrl,
    `insert into idempotency_keys
       (idem_key, request_hash, response_code, response_body, created_at, expires_at)
     select ${key}, 'hash', 200, '{}', now() - interval '1 day', ${expiresAt}
     from generate_series(1, ${count}) n`,
  );
}

/** From then on the table `deletes` has the number of rows of each statement that deletes. */
async function countDeletes(ownerUrl: string): Promise<void> {
  await ask(
    ownerUrl,
    `create table deletes (rows int);
     create function count_deletes() returns trigger
     language plpgsql security definer set search_path = public as $$
     begin
       insert into deletes select count(*) from deleted;
       return null;
     end $$;
     create trigger count_deletes after delete on idempotency_keys
       referencing old table as deleted for each statement execute function count_deletes();
     create trigger count_deletes after delete on outbox_events
       referencing old table as deleted for each statement execute function count_deletes()`,
  );
}

async function keysOf(ownerUrl: string): Promise<string[]> {
  const rows = await ask<{ idem_key: string }>(
    ownerUrl,
    "select idem_key from idempotency_keys order by idem_key",
  );
  return rows.map(({ idem_key }) => idem_key);
}

async function partitionAges(ownerUrl: string): Promise<number[]> {
  const rows = await ask<{ age: number }>(
    ownerUrl,
    `select (extract(year from age) * 12 + extract(month from age))::int as age
     from pg_inherits
     join pg_class on pg_class.oid = inhrelid
     cross join lateral age(
       date_trunc('month', now() at time zone 'UTC'),
       to_date(substring(relname from '[0-9]{4}_[0-9]{2}$'), 'YYYY_MM')) as age
     where inhparent = 'entitlement_audit'::regclass and relname <> 'entitlement_audit_default'
     order by age`,
  );
  return rows.map(({ age }) => age);
}
