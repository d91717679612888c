import { pointsKeyOf } from "@kenri/proto/points/aggregate_key.ts";
import type { PointsEventFields } from "@kenri/proto/points/decode.ts";
import { query, type Transaction } from "@kenri/shared/postgres/postgres.ts";
import { auditHash } from "../audit/hash.ts";
import { announcePoints } from "../points/store_points.ts";

// Skips a version that the balance has reached already. The event is published again, and receivers
// remove the duplicate. The audit chain continues from its last row in the backup.
export async function storePoints(
  tx: Transaction,
  event: PointsEventFields,
  maySkipVersions: boolean,
): Promise<boolean> {
  const stored = await query(
    tx,
    `with points as materialized (
       select *, ${auditHash("entry")} as hash
       from (
         ${entryOfEvent}
         offset 0 -- so that PostgreSQL evaluates this only once
       ) as entry
     ), moved as (
       insert into point_root (user_id, unit, balance, version, updated_at, last_hash)
       select user_id, unit, balance, version, occurred_at, hash
       from points
       on conflict (user_id, unit) do update set
         balance = excluded.balance,
         version = excluded.version,
         updated_at = excluded.updated_at,
         last_hash = excluded.last_hash
     ), made as (
       insert into point_transactions
         (id, idempotency_key, user_id, unit, kind, point_amount, balance_after, version, source,
          source_id, reservation_id, created_at)
       select audit_id, idempotency_key, user_id, unit, kind, point_amount, balance, version,
         source, source_id, reservation_id, occurred_at
       from points
     ), done as (
       update point_reservations reservation
       set status = 'DONE',
         transaction_id = audit_id,
         claim_token = null,
         updated_at = occurred_at,
         done_at = occurred_at
       from points
       where reservation.id = points.done_id
     )
     insert into entitlement_audit
       (audit_id, occurred_at, user_id, stock_keeping_unit, action, source, source_id, request_id,
        caller, detail, salt, previous_hash, previous_at, hash)
     select audit_id, occurred_at, user_id, stock_keeping_unit, action, source, source_id,
       request_id, caller, detail, salt, previous_hash, previous_at, hash
     from points
     returning 1`,
    [JSON.stringify(event), maySkipVersions],
  );
  if (stored.length === 0) return false;
  const { event_id: id, occurred_at: created_at, ...fields } = event;
  const aggregate_key = pointsKeyOf(event.user_id, event.unit);
  await announcePoints(tx, [{ ...fields, id, created_at, aggregate_key, traceparent: null }]);
  return true;
}

// The caller and the Idempotency-Key of a request are not part of its event, so they are lost: the
// transaction gets a key that no request can have. A reservation that the backup has is done with its
// transaction, whose key is the one that the worker would use. So it is not carried out again.
const entryOfEvent =
  `select event.*, event_id as audit_id, 'points:' || event.unit as stock_keeping_unit,
         case when event.point_amount > 0 then 'POINTS_ADD' else 'POINTS_TAKE' end as action,
         case when event.point_amount > 0 then 'GRANT' else 'SPEND' end as kind,
         before.last_hash as previous_hash, before.updated_at as previous_at,
         jsonb_build_object('version', event.version, 'trace_id', event.trace_id,
           'point_amount', event.point_amount, 'balance', event.balance) as detail,
         gen_random_uuid() as salt, reservation.id as done_id, reservation.caller,
         coalesce('reservation:' || reservation.id, 'recovered') as request_id,
         case when reservation.caller <> '' then reservation.caller || ' ' else '' end
           || coalesce('reservation:' || reservation.id, 'recovered: ' || event_id)
           as idempotency_key
       from jsonb_to_record($1) as event (
         event_id uuid, user_id text, unit text, point_amount bigint, balance bigint,
         version bigint, source text, source_id text, reservation_id uuid, trace_id text,
         occurred_at timestamptz)
       left join point_root before
         on before.user_id = event.user_id
         and before.unit = event.unit
       left join point_reservations reservation
         on reservation.id = event.reservation_id
         and reservation.user_id = event.user_id
         and reservation.unit = event.unit
         and reservation.point_amount = event.point_amount
         and reservation.status not in ('DONE', 'CANCELLED')
       where event.version = coalesce(before.version, 0) + 1
           and event.balance = coalesce(before.balance, 0) + event.point_amount
         or $2 and event.version > coalesce(before.version, 0)`;
