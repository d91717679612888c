// What becomes of due reservations, done by one statement inside PostgreSQL: no lease, no commands and
// nothing to read for a service. It is the best that a worker on this table could reach.
import { auditHash } from "../../entitlement/audit/hash.ts";
import { type Database, query, transaction, utc } from "../../shared/postgres/postgres.ts";

// The id of the reservation is also that of its transaction, event and audit row. No two reservations of
// a batch are of one user.
const grantDue = `
  with due as materialized (
    select id, user_id, unit, point_amount, trace_id
    from point_reservations
    where unfinished and due_at <= now()
    order by due_at
    limit $1
    for update skip locked
  ), entry as materialized (
    select due.*, id as audit_id, clock_timestamp() as occurred_at, 'POINTS_ADD' as action,
      'points:' || unit as stock_keeping_unit, 'reservation' as source, id::text as source_id,
      'reservation:' || id as request_id, '' as caller, gen_random_uuid() as salt,
      coalesce(balance, 0) + point_amount as balance, coalesce(version, 0) + 1 as version,
      jsonb_build_object('version', coalesce(version, 0) + 1, 'trace_id', trace_id,
        'point_amount', point_amount, 'balance', coalesce(balance, 0) + point_amount) as detail,
      last_hash as previous_hash, updated_at as previous_at
    from due
    left join point_root using (user_id, unit)
  ), sealed as materialized (
    select *, ${auditHash("entry")} as hash from entry
  ), added as (
    insert into point_transactions
      (id, idempotency_key, user_id, unit, kind, point_amount, balance_after, version, source,
       source_id, reservation_id, created_at)
    select id, request_id, user_id, unit, 'GRANT', point_amount, balance, version, source, source_id,
      id, occurred_at
    from sealed
  ), moved as (
    insert into point_root as root (user_id, unit, balance, version, updated_at, last_hash)
    select user_id, unit, balance, version, occurred_at, hash from sealed
    on conflict (user_id, unit) do update set
      balance = excluded.balance, version = excluded.version, updated_at = excluded.updated_at,
      last_hash = excluded.last_hash
  ), audited as (
    insert into entitlement_audit
      (audit_id, occurred_at, user_id, stock_keeping_unit, action, source, source_id, request_id,
       caller, detail, salt, previous_hash, previous_at, hash)
    select audit_id, occurred_at, user_id, stock_keeping_unit, action, source, source_id, request_id,
      caller, detail, salt, previous_hash, previous_at, hash
    from sealed
  ), announced as (
    insert into outbox_events (event_id, event_type, aggregate_key, payload, created_at)
    select id, 'PointsAdded', points_key_of(user_id, unit),
      jsonb_build_object(
        'event_id', id, 'event_type', 'PointsAdded', 'occurred_at', ${utc("occurred_at")},
        'user_id', user_id, 'unit', unit, 'point_amount', point_amount, 'balance', balance,
        'version', version, 'source', source, 'source_id', source_id, 'transaction_id', id,
        'reservation_id', id, 'trace_id', trace_id),
      occurred_at
    from sealed
  ), done as (
    update point_reservations row
    set status = 'DONE', transaction_id = row.id, done_at = occurred_at, updated_at = occurred_at
    from sealed
    where row.id = sealed.id
  )
  select count(*)::int as count from sealed`;

/** Returns how many reservations were granted. */
export async function grantAllDue(database: Database, batchSize: number): Promise<number> {
  for (let granted = 0;;) {
    const [{ count } = { count: 0 }] = await transaction(
      database,
      (tx) => query<{ count: number }>(tx, grantDue, [batchSize]),
    );
    if (count === 0) return granted;
    granted += count;
  }
}
