import { z } from "@hono/zod-openapi";
import {
  firstPosition,
  pageFields,
  pageOf,
  positionSchema,
  readCursor,
} from "@kenri/shared/http/cursor.ts";
import { lookRoute } from "@kenri/shared/operators/look_route.ts";
import { valid } from "@kenri/shared/operators/operations.ts";
import { type Database, query, utc } from "@kenri/shared/postgres/postgres.ts";
import type { Handler } from "hono";
import { reservationColumns, type ReservationLook, reservationSchema } from "./reservations.ts";

// The reservations whose time has not come, the soonest first. Those that failed and wait for their
// next attempt are among them.

const answerSchema = z.object({
  reservations: z.array(reservationSchema),
  next_cursor: z.string().optional(),
});

export type Upcoming = z.infer<typeof answerSchema>;

const requestSchema = z.object(pageFields());

export type UpcomingQuery = z.input<typeof requestSchema>;

export const upcomingRoute = lookRoute({
  path: "/debug/entitlement/points/upcoming",
  summary: "Reservations to come",
  description: "The reservations whose time has not come, of all callers",
  query: requestSchema,
  answer: answerSchema,
  answers: "The soonest first",
  invalid: "The limit or cursor is invalid",
});

export function upcoming(database: Database): Handler {
  return async ({ req }) => {
    const { limit, cursor } = valid(requestSchema.safeParse(req.query()));
    const [after, id] = readCursor(cursor, positionSchema) ?? firstPosition;
    const found = await query<ReservationLook>(
      database,
      `select ${reservationColumns}
       from point_reservations
       where unfinished
         and point_reservations.due_at >= greatest(now(), $1::timestamptz)
         and (point_reservations.due_at, id) > ($1, $2::uuid)
       order by point_reservations.due_at, id
       limit $3`,
      [after, id, limit + 1],
    );
    const page = pageOf(found, limit, ({ due_at, reservation_id }) => [due_at, reservation_id]);
    return Response.json({ reservations: page.rows, next_cursor: page.next_cursor });
  };
}

/** How many there are, counted up to the given number, and when the first is due. */
export async function findUpcoming(
  database: Database,
  countUpTo: number,
): Promise<{ upcoming: number; next_due_at: string | null }> {
  const [found] = await query<{ upcoming: number; next_due_at: string | null }>(
    database,
    `select
       (select count(*)
        from (select
              from point_reservations
              where unfinished and due_at > now()
              order by due_at
              limit $1) as found) as upcoming,
       (select ${utc("due_at")}
        from point_reservations
        where unfinished and due_at > now()
        order by due_at
        limit 1) as next_due_at`,
    [countUpTo],
  );
  return found ?? { upcoming: 0, next_due_at: null };
}
