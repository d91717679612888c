// Points and reservations over HTTP, as callers ask for them, and their rows.
import assert from "node:assert/strict";
import { plantedKey } from "../../tools/planted.ts";
import { ask } from "../../tools/servers/asking.ts";
import { until } from "../../tools/servers/wait.ts";
import { type Answer, call, command } from "./api.ts";

type Fields = Record<string, unknown>;
type Headers = Record<string, string>;

export const paths = {
  reserve: "/v1/points/reservations",
  grant: "/v1/points/grants",
  spend: "/v1/points/spends",
  reserveRight: "/v1/entitlements/reservations",
};

const points = { user_id: "ann", point_amount: 10 };
const cause = { reason: "purchase", source_id: "p-1" };

/** Bodies that are accepted. */
export const someBody = {
  reserve: { ...points, execute_at: "2026-01-02T03:04:05Z" },
  grant: { ...points, ...cause },
  spend: { ...points, ...cause },
  reserveRight: {
    action: "GRANT",
    user_id: "ann",
    stock_keeping_unit: "book",
    reason: "purchase",
    purchase_id: "p-1",
    execute_at: "2026-01-02T03:04:05Z",
  },
};

const posted = (door: keyof typeof paths) =>
(
  url: string,
  fields: Fields = {},
  key: string | undefined = newKey(),
  headers: Headers = {},
): Promise<Answer> => command(url + paths[door], { ...someBody[door], ...fields }, key, headers);

// Without a key, each call gets a new one.
export const reserve = posted("reserve");
export const grantPoints = posted("grant");
export const spendPoints = posted("spend");
export const reserveRight = posted("reserveRight");

export function newKey(): string {
  return `${plantedKey}-${crypto.randomUUID()}`;
}

/** A time from now on, which may be in the past. */
export function inMs(ms: number): string {
  return new Date(Date.now() + ms).toISOString();
}

export function find(
  url: string,
  id: string,
  headers: Headers = {},
  path: string = paths.reserve,
): Promise<Answer> {
  return call(`${url}${path}/${id}`, { headers });
}

export function cancel(
  url: string,
  id: string,
  headers: Headers = {},
  path: string = paths.reserve,
): Promise<Answer> {
  return call(`${url}${path}/${id}`, { method: "DELETE", headers });
}

type List = "points" | "points/transactions" | "points/reservations";

export function listOf(
  url: string,
  userId: string,
  list: List,
  query: Record<string, string> = {},
  headers: Headers = {},
): Promise<Answer> {
  const user = encodeURIComponent(userId);
  return call(`${url}/v1/users/${user}/${list}?${new URLSearchParams(query)}`, { headers });
}

/** The balance in the only unit that a user has, or 0. */
export async function balanceOf(url: string, userId: string): Promise<number> {
  const { json } = await listOf(url, userId, "points");
  assert.ok(json.balances.length <= 1, JSON.stringify(json));
  return json.balances[0]?.balance ?? 0;
}

export interface ReservationRow {
  id: string;
  user_id: string;
  status: "PENDING" | "PROCESSING" | "DONE" | "FAILED" | "CANCELLED";
  attempt_count: number;
  last_error: string | null;
  transaction_id: string | null;
  outcome: { status: number; body: unknown } | null;
  execute_at: Date;
  late_ms: number; // from its time until it was done
}

/** In the order of their times. */
export function reservationRows(ownerUrl: string): Promise<ReservationRow[]> {
  return ask<ReservationRow>(
    ownerUrl,
    `select id, user_id, status, attempt_count, last_error, transaction_id, outcome, execute_at,
       extract(epoch from done_at - execute_at)::float8 * 1000 as late_ms
     from point_reservations
     order by execute_at, id`,
  );
}

/** How many reservations there are in each status. */
export async function statusesOf(ownerUrl: string): Promise<Record<string, number>> {
  const rows = await ask<{ status: string; count: number }>(
    ownerUrl,
    "select status, count(*)::int from point_reservations group by status",
  );
  return Object.fromEntries(rows.map(({ status, count }) => [status, count]));
}

/** Waits until every reservation has one of these statuses. */
export async function untilAllAre(
  ownerUrl: string,
  statuses: ReservationRow["status"][],
  withinMs?: number,
): Promise<ReservationRow[]> {
  let seen: Record<string, number> = {};
  await until(`all are ${statuses.join(" or ")}`, async () => {
    seen = await statusesOf(ownerUrl);
    return Object.keys(seen).every((status) => (statuses as string[]).includes(status));
  }, withinMs).catch((error) => {
    throw new Error(`${error.message}: ${JSON.stringify(seen)}`);
  });
  return await reservationRows(ownerUrl);
}

/** Done when they were due, and not by a poll an hour later. The bound is for busy machines. */
export function assertOnTime(rows: ReservationRow[]): void {
  for (const { late_ms, attempt_count } of rows) {
    assert.ok(late_ms >= 0 && late_ms < 10_000, `${late_ms} ms late`);
    assert.equal(attempt_count, 0);
  }
}

export interface NewReservations {
  count: number;
  users: number;
  fromMs: number; // when the first is due, from now on
  overMs: number; // from the first to the last
  amount?: number;
}

/** Inserts reservations as the API does; the users are user-0, user-1 and so on. */
export async function insertReservations(
  ownerUrl: string,
  { count, users, fromMs, overMs, amount = 1 }: NewReservations,
): Promise<string[]> {
  const rows = await ask<{ id: string }>(
    ownerUrl,
    `insert into point_reservations
       (id, kind, caller, idempotency_key, user_id, unit, point_amount, execute_at, trace_id,
        aggregate_key, position, created_at, updated_at)
     select id, 'POINTS', '', 'inserted-' || id, 'user-' || n % $2, 'points', $5,
       now() + make_interval(secs => ($3 + $4::float8 * n / $1) / 1000), 'inserted',
       'reservation:' || id, id, now(), now()
     from (select n, gen_random_uuid() as id from generate_series(0, $1::int - 1) n) one
     order by n
     returning id`,
    [count, users, fromMs, overMs, amount],
  );
  return rows.map(({ id }) => id);
}

export interface TransactionRow {
  id: string;
  user_id: string;
  kind: "GRANT" | "SPEND";
  point_amount: number;
  balance_after: number;
  version: number;
  source: string;
  source_id: string;
  reservation_id: string | null;
}

/** In the order of their versions. */
export function transactionRows(ownerUrl: string, userId?: string): Promise<TransactionRow[]> {
  return ask<TransactionRow>(
    ownerUrl,
    `select id, user_id, kind, point_amount::float8, balance_after::float8, version::int, source,
       source_id, reservation_id
     from point_transactions
     where $1::text is null or user_id = $1
     order by user_id, unit, version`,
    [userId ?? null],
  );
}

/** Guarantees 1 to 3: nothing early, done and one transaction together, and the sums agree. */
export async function assertSums(ownerUrl: string): Promise<void> {
  const [wrong] = await ask<Record<string, number>>(ownerUrl, wrongRows);
  const found = Object.entries(wrong ?? {}).filter(([, count]) => count > 0);
  assert.deepEqual(Object.fromEntries(found), {});
}

const wrongRows = `
with summed as (
  select user_id, unit, sum(point_amount) as balance, count(*) as version, max(version) as newest
  from point_transactions
  group by user_id, unit
), event as (
  select event_id as id, count(*) from outbox_events group by event_id
), audit as (
  select audit_id as id, count(*) from entitlement_audit group by audit_id
), granted as (
  select reservation_id as id, array_agg(id) as transactions
  from point_transactions
  where reservation_id is not null
  group by reservation_id
), done as (
  select id, transaction_id, execute_at
  from point_reservations
  where kind = 'POINTS' and status = 'DONE'
)
select
  (select count(*)::int
   from summed full join point_root root using (user_id, unit)
   where summed.balance is distinct from root.balance
     or summed.version is distinct from root.version
     or summed.newest is distinct from root.version) as "balances that are no sum",
  (select count(*)::int
   from point_transactions left join event using (id)
   where count is distinct from 1) as "without one event",
  (select count(*)::int
   from point_transactions left join audit using (id)
   where count is distinct from 1) as "not audited once",
  (select count(*)::int
   from granted full join done using (id)
   where transactions is distinct from array[transaction_id]) as "not granted once and done",
  (select count(*)::int
   from point_transactions change join done on done.id = change.reservation_id
   where change.created_at < done.execute_at) as "early"`;
