// Reservations of points as the service stores them, and what must be there when they were granted.
import type pg from "pg";
import type { DatabaseUrls } from "../load/stage.ts";
import { expectRows, uuidOfRow } from "./database.ts";

export interface Reserved {
  reservations: number;
  users?: number; // who share them; absent: each is of a user of its own
  at?: string; // when the reservation with this `number` is due; absent: now
}

/** The worker sees them all at once. */
export async function reserve(owner: pg.Client, reserved: Reserved): Promise<void> {
  const { reservations, users = reservations, at = "now()" } = reserved;
  await owner.query(
    `insert into point_reservations
       (id, kind, caller, idempotency_key, user_id, unit, point_amount, execute_at, trace_id,
        aggregate_key, position, created_at, updated_at)
     select id, 'POINTS', '', id, 'user-' || number % $2::int, 'points', 10, ${at}, md5(id::text),
       id, id, now(), now()
     from (
       select number, ${uuidOfRow("clock_timestamp()")} as id
       from generate_series(1, $1::int) as number
     ) as reservation`,
    [reservations, users],
  );
}

/** With a new balance for each user. */
export async function forgetPoints(owner: pg.Client): Promise<void> {
  await owner.query(
    `truncate point_reservations, reservation_attempts, point_transactions, point_root,
       entitlement_audit, outbox_events, outbox_attempts`,
  );
}

export const nextYear = "now() + interval '1 year' + number * interval '30 ms'";
export const isDue = "point_reservations where unfinished and due_at <= now()";

/** Fails unless so many were granted, each once and at the first attempt. */
export async function assertGranted(
  database: DatabaseUrls,
  reservations: number,
  users = reservations,
): Promise<void> {
  for (
    const from of [
      "point_reservations where status = 'DONE' and attempt_count = 0",
      "outbox_events where event_type = 'PointsAdded'",
      "entitlement_audit where action = 'POINTS_ADD' and hash is not null",
    ]
  ) await expectRows(database, reservations, from);
  await assertBalances(database, reservations, users);
}

/** Fails unless each was granted once and the balances are the sums. */
export async function assertBalances(
  database: DatabaseUrls,
  reservations: number,
  users: number,
): Promise<void> {
  await expectRows(
    database,
    reservations,
    "(select distinct reservation_id, idempotency_key from point_transactions) as granted",
  );
  await expectRows(
    database,
    Math.min(users, reservations),
    `(select user_id, sum(point_amount) as points, count(*) as transactions
      from point_transactions group by user_id) as granted
     join point_root using (user_id)
     where balance = points and version = transactions`,
  );
}
