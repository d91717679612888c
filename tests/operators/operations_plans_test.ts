// The queries of operators use an index however large the tables are, even with plans that
// PostgreSQL made while the tables were empty.
import assert from "node:assert/strict";
import { backlogFigures } from "../../entitlement/backlog.ts";
import { openDatabase } from "../../shared/postgres/postgres.ts";
import { freshDatabase } from "../support/databases.ts";
import { ask } from "../support/entitlement.ts";
import { look, operate, type Stack, startStack } from "../support/stack.ts";
import { until } from "../../tools/servers/wait.ts";

const finished = 20_000;
const rounds = 10;

Deno.test("a scrape reads only a part of the reservations to come, and none that are done", async () => {
  const { ownerUrl, serviceUrl, drop } = await freshDatabase("entitlement");
  await using _place = { [Symbol.asyncDispose]: drop };
  const database = openDatabase(serviceUrl, "test");
  for (let i = 0; i < rounds; i++) await backlogFigures(database); // now it has generic plans
  await fillPoints(ownerUrl);
  await ask(ownerUrl, reservationsOf("PENDING", "now() + interval '1 day'", 3 * finished));
  await untilAlone(ownerUrl, "test");
  await ask(ownerUrl, "select pg_stat_reset()");
  const [scrapes, countedAtMost] = [3, 10_000];
  for (let i = 0; i < scrapes; i++) {
    const figures = await backlogFigures(database);
    assert.equal(figures.at(-1)?.value, countedAtMost);
  }
  await database.end();
  await untilAlone(ownerUrl, "");
  const read = await ask<{ table: string; rows: number }>(ownerUrl, readIn("^point|^reservation"));
  assert.deepEqual(read.map(({ table }) => table), ["point_reservations"]);
  assert.ok((read[0]?.rows ?? 0) <= scrapes * (countedAtMost + 10), JSON.stringify(read));
});

const readIn = (tables: string) =>
  `select relname as table, (seq_tup_read + coalesce(idx_tup_fetch, 0))::int as rows
   from pg_stat_user_tables
   where relname ~ '${tables}' and seq_tup_read + coalesce(idx_tup_fetch, 0) > 0`;

// A session reports what it has read at its end.
const untilAlone = (ownerUrl: string, but: string) =>
  until("the other sessions are gone", async () =>
    (await ask(
      ownerUrl,
      `select from pg_stat_activity
       where datname = current_database() and pid <> pg_backend_pid()
         and application_name not like $1`,
      [but],
    )).length === 0);

Deno.test("no query of an operator scans finished rows", async () => {
  await using stack = await startStack({ entitlement: { ENTITLEMENT_RECONCILE_ENABLED: "false" } });
  const { entitlement, notification, place } = stack;
  await askAll(stack); // now PostgreSQL has generic plans
  await fill(stack);
  for (const { ownerUrl } of [entitlement.database, place]) {
    // A session reports what it has read at its end.
    await until("the sessions that filled the tables are gone", async () =>
      (await ask(
        ownerUrl,
        `select from pg_stat_activity
         where datname = current_database() and usename = current_user and pid <> pg_backend_pid()`,
      )).length === 0);
    await ask(ownerUrl, "select pg_stat_reset()");
  }
  await askAll(stack);
  await entitlement.service.stop(); // at the end of their sessions the counters are complete
  await notification.stop();
  for (const ownerUrl of [entitlement.database.ownerUrl, place.ownerUrl]) {
    const read = await ask<{ table: string; rows: number }>(
      ownerUrl,
      `select relname as table, (seq_tup_read + coalesce(idx_tup_fetch, 0))::int as rows
       from pg_stat_user_tables
       where relname ~ '^(outbox|entitlement|notification|processed|delivery|operations|point|reservation|order|idempo|endpoint)'
         and seq_tup_read + coalesce(idx_tup_fetch, 0) > $1`,
      [finished / 4],
    );
    assert.deepEqual(read, []);
  }
});

async function askAll({ entitlement, notification }: Stack): Promise<void> {
  const id = crypto.randomUUID();
  const [own, other] = ["/debug/entitlement", "/debug/notification"];
  const [from, to] = ["2020-01-01T00:00:00Z", "2020-01-02T00:00:00Z"];
  const ids = { ids: [id], error: undefined };
  for (let i = 0; i < rounds; i++) {
    for (
      const path of [
        ...["status", "dead-letters", "dead-letters/errors", "dead-letters?error=e", "operations"],
        ...[`dead-letters?id=${id}`, "reconciliation", "timeline?user_id=user-1"],
        ...[`timeline?event_id=${id}`, "timeline?idempotency_key=key-1"],
        ...[`timeline?reservation_id=${id}`, "dead-letters?layer=reservation&error=e"],
        ...["dead-letters?layer=reservation", `dead-letters?layer=reservation&id=${id}`],
        ...["points/upcoming", "points/user?user_id=user-1", "points/user?user_id=user-1&unit=u"],
        ...["points/verify?user_id=user-1"],
      ]
    ) await look(entitlement.url, `${own}/${path}`);
    for (
      const path of [
        ...["status", "dead-letters", "dead-letters/errors", "dead-letters?error=e", "operations"],
        ...["dead-letters?layer=advisory", "dead-letters?layer=advisory&error=e"],
        ...["dead-letters?id=1", "dead-letters?layer=advisory&id=1"],
        ...["timeline?user_id=user-1", `timeline?event_id=${id}`],
        ...[`timeline?order_id=${id}`, "timeline?idempotency_key=key-1", `orders?order_id=${id}`],
        ...["orders?idempotency_key=key-1", `orders?endpoint_id=${id}`, `attempts?order_id=${id}`],
        ...[`orders?endpoint_id=${id}&status=PARKED`, `attempts?endpoint_id=${id}`, "endpoints"],
        ...["dead-letters?layer=order", "dead-letters?layer=order&error=e"],
        ...[`dead-letters?layer=order&id=${id}`],
      ]
    ) await look(notification.url, `${other}/${path}`);
    await operate(entitlement.url, "/operations/entitlement/dead-letters/send-back", ids);
    await operate(entitlement.url, "/operations/entitlement/dead-letters/send-back", {
      ...ids,
      layer: "reservation",
    });
    await operate(entitlement.url, "/operations/entitlement/replay", { from, to });
    await operate(entitlement.url, "/operations/entitlement/replay", { from, to, dry_run: true });
    const since = new Date(Date.now() - 1_000).toISOString();
    await operate(entitlement.url, "/operations/entitlement/reconcile", {
      since,
      grace_seconds: 0,
    });
    for (const layer of ["delivery", "advisory"]) {
      const body = { layer, ids: ["1"] };
      await operate(notification.url, "/operations/notification/dead-letters/send-back", body);
    }
    await operate(notification.url, "/operations/notification/dead-letters/send-back", {
      ...ids,
      layer: "order",
    });
  }
}

// The finished rows of a day, all older than the queries ask for.
async function fill({ entitlement, place }: Stack): Promise<void> {
  await ask(
    entitlement.database.ownerUrl,
    `insert into entitlements
       (user_id, stock_keeping_unit, status, granted_at, source, source_id, version, updated_at)
     select 'user-' || n, 'sku', 'ACTIVE', now(), 's', 'p', 1, now() - interval '2 hours' - n * interval '1 ms'
     from generate_series(1, ${finished}) as n`,
  );
  await ask(
    entitlement.database.ownerUrl,
    `insert into entitlement_audit
       (audit_id, occurred_at, user_id, stock_keeping_unit, action, source, source_id, request_id, detail)
     select gen_random_uuid(), updated_at, user_id, 'sku', 'GRANT', 's', 'p', 'k', '{"version": 1}'
     from entitlements`,
  );
  await ask(
    entitlement.database.ownerUrl,
    `insert into outbox_events
       (event_id, event_type, aggregate_key, payload, status, created_at, published_at, stream_seq)
     select audit_id, 'T', user_id || ':sku', '{}', 'PUBLISHED', occurred_at, occurred_at, 1
     from entitlement_audit`,
  );
  await ask(
    entitlement.database.ownerUrl,
    `insert into idempotency_keys
       (idem_key, request_hash, response_code, response_body, created_at, expires_at)
     select 'key-' || n, '', 200, '{}', now(), now() + interval '1 day'
     from generate_series(1, ${finished}) as n`,
  );
  await fillPoints(entitlement.database.ownerUrl);
  await ask(
    place.ownerUrl,
    `insert into notifications
       (notification_id, event_id, user_id, aggregate_key, version, type, occurred_at, payload_json,
        status, sent_at, created_at)
     select gen_random_uuid(), gen_random_uuid(), 'user-' || n, 'user-' || n || ':sku', 1, 'T', now(),
       '{}', 'SENT', now(), now() - interval '2 hours'
     from generate_series(1, ${finished}) as n`,
  );
  await ask(
    place.ownerUrl,
    "insert into processed_events (event_id) select event_id from notifications",
  );
  await fillOrders(place.ownerUrl);
}

// Each order is of an endpoint and an event of its own.
async function fillOrders(ownerUrl: string): Promise<void> {
  await ask(
    ownerUrl,
    `insert into outbox_orders
       (id, idempotency_key, caller, adapter, order_request_json, request_digest, lane, endpoint_id,
        event_id, aggregate_key, position, status, trace_id, created_at, finished_at)
     select id, event_id || ':' || id, '', 'webhook', '{}', '', id, id, event_id, id, 1, 'SUCCEEDED',
       '', now() - interval '2 hours', now()
     from (select gen_random_uuid() as id, event_id from notifications) as given`,
  );
  await ask(
    ownerUrl,
    `insert into order_attempts (id, outcome, endpoint_id)
     select id, 'SUCCEEDED', endpoint_id from outbox_orders`,
  );
  await ask(
    ownerUrl,
    `insert into idempo_ledger (idempotency_key, request_digest, status, order_id)
     select idempotency_key, '', 'SUCCEEDED', id from outbox_orders`,
  );
}

// Each reservation is of another user.
const reservationsOf = (status: string, at: string, count: number) =>
  `insert into point_reservations
     (id, kind, caller, idempotency_key, user_id, unit, point_amount, execute_at, trace_id,
      aggregate_key, position, status, transaction_id, created_at, updated_at, done_at)
   select id, 'POINTS', '', id, 'user-' || n, 'u', 1, ${at}, '', id, id, '${status}',
     case when '${status}' = 'DONE' then id end, now(), now(),
     case when '${status}' = 'DONE' then ${at} end
   from (select n, gen_random_uuid() as id from generate_series(1, ${count}) as n) as given`;

async function fillPoints(ownerUrl: string): Promise<void> {
  await ask(ownerUrl, reservationsOf("DONE", "now() - interval '2 days'", finished));
  await ask(
    ownerUrl,
    `insert into point_transactions
       (id, idempotency_key, user_id, unit, kind, point_amount, balance_after, version, source,
        source_id, reservation_id, created_at)
     select transaction_id, id, user_id, unit, 'GRANT', 1, 1, 1, '', '', id, done_at
     from point_reservations`,
  );
  await ask(
    ownerUrl,
    `insert into point_root (user_id, unit, balance, version, updated_at, last_hash)
     select user_id, unit, 1, 1, created_at, '' from point_transactions`,
  );
}
