import { z } from "@hono/zod-openapi";
import { callerOf } from "@kenri/shared/access/caller.ts";
import {
  firstPosition,
  pageFields,
  pageOf,
  positionSchema,
  readCursor,
} from "@kenri/shared/http/cursor.ts";
import { errorAnswer, fieldSchema } from "@kenri/shared/http/fields.ts";
import type { ScopedRoute } from "@kenri/shared/http/openapi.ts";
import { pathPart } from "@kenri/shared/http/route.ts";
import { valid } from "@kenri/shared/operators/operations.ts";
import { type Database, query } from "@kenri/shared/postgres/postgres.ts";
import { literal, nothing, sql } from "@kenri/shared/postgres/sql.ts";
import type { Handler } from "hono";
import {
  pointsFamily,
  pointsReservationSchema,
  type Reservation,
  reservationColumns,
  shown,
  statuses,
} from "./reservation.ts";

const requestSchema = z.object({
  user_id: fieldSchema().openapi({
    description: "The user whose reservations are listed",
    example: "ann",
  }),
  status: z.enum(statuses, `must be one of ${statuses.join(", ")}`).optional(),
  ...pageFields(),
});

export const reservationsSchema = z.object({
  reservations: z.array(pointsReservationSchema),
  next_cursor: z.string().optional(),
}).openapi("PointReservations");

export const reservationsRoute: ScopedRoute = {
  method: "get",
  path: "/v1/users/{user_id}/points/reservations",
  scope: "points:read",
  operationId: "listPointReservations",
  tags: ["Points"],
  summary: "All reservations of points for a user",
  description: "The soonest first. Callers see only their own reservations.",
  request: {
    params: requestSchema.pick({ user_id: true }),
    query: requestSchema.pick({ status: true, limit: true, cursor: true }),
  },
  responses: {
    200: {
      description: "Empty for an unknown user; next_cursor is present if there are more",
      content: {
        "application/json": {
          schema: reservationsSchema,
          example: { reservations: [pointsFamily.example] },
        },
      },
    },
    400: errorAnswer("The user_id, status, limit or cursor is invalid", {
      BAD_REQUEST: "limit must be at most 200",
    }),
  },
};

export function listReservations(database: Database): Handler {
  return async (context) => {
    const { req } = context;
    const { user_id, status, limit, cursor } = valid(
      requestSchema.safeParse({ ...req.query(), user_id: pathPart(req, "user_id") }),
    );
    const { name: caller } = callerOf(context);
    const [at, id] = readCursor(cursor, positionSchema) ?? firstPosition;
    const found = await query<Reservation & Record<string, unknown>>(
      database,
      sql`
      select ${reservationColumns}
      from point_reservations
      where user_id = ${user_id}
        and (point_reservations.execute_at, id) > (${at}::timestamptz, ${id}::uuid)
        and caller = ${caller}
        and kind = 'POINTS'${
        status === undefined ? nothing : sql`
        and status = ${literal(status)}`
      }
      order by point_reservations.execute_at, id
      limit ${limit + 1}`,
    );
    const { rows, next_cursor } = pageOf(found, limit, (row) => [row.execute_at, row.id]);
    return Response.json({ reservations: rows.map(shown), next_cursor });
  };
}
