import { aggregateKeyOf } from "@kenri/proto/entitlement/aggregate_key.ts";
import type { Sender } from "@kenri/shared/commands/route.ts";
import { storedKeyOf } from "@kenri/shared/commands/stored_answers.ts";
import { query, type Transaction, utc } from "@kenri/shared/postgres/postgres.ts";
import { sql } from "@kenri/shared/postgres/sql.ts";
import { uuidv7 } from "@kenri/shared/process/uuid.ts";
import { joinsHolders } from "./held_keys.ts";
import type { Reservation } from "./reservation.ts";
import type { ReservationRow } from "./reservations.ts";
import type { Reserve } from "./reserve.ts";

// What the database contains for a reservation.
export interface Situation {
  id: string; // for the reservation
  createdAt: string;
  keyIsUsed: boolean; // a transaction or another reservation has its key, or had it and was erased
  isSoon: boolean; // due before the worker looks again by itself
}

// A reservation to write.
export interface Accepted {
  kind: "reservation";
  reservation: Reservation;
  sender: Sender;
  isSoon: boolean;
}

export async function findSituations(
  tx: Transaction,
  given: Reserve[],
  pollIntervalMs: number,
): Promise<Situation[]> {
  const found = await query<Omit<Situation, "id">>(
    tx,
    sql`
    select ${utc(sql`clock_timestamp()`)} as "createdAt",
      wanted.execute_at < now() + make_interval(secs => ${pollIntervalMs}::float8 / 500)
        as "isSoon",
      coalesce(known.id, reserved.id) is not null or erased.digest is not null as "keyIsUsed"
    from unnest(
      ${given.map(storedKeyOf)}::text[],
      ${given.map(({ caller }) => caller)}::text[],
      ${given.map(({ idempotencyKey }) => idempotencyKey)}::text[],
      ${given.map(({ executeAt }) => executeAt)}::timestamptz[]
    ) with ordinality as wanted (stored_key, caller, idempotency_key, execute_at, position)
    ${joinsHolders}
    order by wanted.position`,
  );
  return found.map((row) => ({ ...row, id: uuidv7() }));
}

// They are PENDING. The worker sleeps until the next one is due or its poll interval has passed, so it
// is woken only for those that are due sooner than that.
export async function storeReservations(
  tx: Transaction,
  effects: Accepted[],
): Promise<ReservationRow[] | undefined> {
  const rows = effects.map(({ reservation, sender }) => ({
    ...reservation,
    caller: sender.caller,
    idempotency_key: sender.idempotencyKey,
    trace_id: sender.traceId,
    traceparent: sender.traceparent,
    aggregate_key: keyOf(reservation),
    position: positionOf(reservation),
  }));
  await query(
    tx,
    sql`
    insert into point_reservations
      (id, kind, caller, idempotency_key, user_id, unit, point_amount, stock_keeping_unit, source,
       source_id, execute_at, trace_id, traceparent, aggregate_key, position, next_retry_at,
       created_at, updated_at)
    select id, kind, caller, idempotency_key, user_id, unit, point_amount, stock_keeping_unit,
      source, source_id, execute_at::timestamptz, trace_id, traceparent, aggregate_key,
      position, case when execute_at::timestamptz <= now() then now() end,
      created_at, created_at
    from json_to_recordset(${JSON.stringify(rows)}) as accepted (
      id uuid, kind text, caller text, idempotency_key text, user_id text, unit text,
      point_amount bigint, stock_keeping_unit text, source text, source_id text, execute_at text,
      trace_id text, traceparent text, aggregate_key text, position text,
      created_at timestamptz)`,
  );
  return effects.some(({ isSoon }) => isSoon) ? [] : undefined;
}

function keyOf({ id, user_id, stock_keeping_unit }: Reservation): string {
  return stock_keeping_unit === null ? id : aggregateKeyOf(user_id, stock_keeping_unit);
}

// Changes of one right that are due together follow the clock of the database, because ids follow
// the clocks of the replicas that made them.
function positionOf({ execute_at, created_at, id }: Reservation): string {
  return `${execute_at} ${created_at} ${id}`;
}
