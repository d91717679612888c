import { z } from "@hono/zod-openapi";
import { utc } from "@kenri/shared/postgres/postgres.ts";

// A reservation as operators see it.

export const reservationSchema = z.object({
  reservation_id: z.uuid(),
  kind: z.enum(["POINTS", "GRANT", "REVOKE"]),
  user_id: z.string(),
  unit: z.string().nullable(),
  point_amount: z.int().nullable(),
  stock_keeping_unit: z.string().nullable(),
  due_at: z.string(),
  execute_at: z.string(),
  status: z.string(),
  attempt_count: z.int(),
  last_error: z.string().nullable(),
}).openapi("UpcomingReservation");

export type ReservationLook = z.infer<typeof reservationSchema>;

// Of the table point_reservations.
export const reservationColumns = `id as reservation_id, kind, user_id,
       unit, point_amount, stock_keeping_unit,
       ${utc("point_reservations.due_at")} as due_at,
       ${utc("point_reservations.execute_at")} as execute_at, status, attempt_count, last_error`;
