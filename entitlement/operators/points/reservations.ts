import { z } from "@hono/zod-openapi";
import { utc } from "@kenri/shared/postgres/postgres.ts";

// A reservation as operators see it.

export const reservationSchema = z.object({
  reservation_id: z.uuid(),
  kind: z.enum(["POINTS", "GRANT", "REVOKE"]),
  user_id: z.string(),
  item: z.string().openapi({ description: "The stock keeping unit, or `points:` and the unit" }),
  point_amount: z.int().nullable(),
  due_at: z.string(),
  execute_at: z.string(),
  status: z.string(),
  attempt_count: z.int(),
  last_error: z.string().nullable(),
}).openapi("UpcomingReservation");

export type ReservationLook = z.infer<typeof reservationSchema>;

// Of the table point_reservations.
export const reservationColumns = `id as reservation_id, kind, user_id,
       coalesce(stock_keeping_unit, 'points:' || unit) as item, point_amount,
       ${utc("point_reservations.due_at")} as due_at,
       ${utc("point_reservations.execute_at")} as execute_at, status, attempt_count, last_error`;
