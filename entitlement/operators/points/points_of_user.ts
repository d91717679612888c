import { z } from "@hono/zod-openapi";
import { pageFields } from "@kenri/shared/http/cursor.ts";
import { fieldSchema } from "@kenri/shared/http/fields.ts";
import { lookRoute } from "@kenri/shared/operators/look_route.ts";
import { valid } from "@kenri/shared/operators/operations.ts";
import { type Database, query } from "@kenri/shared/postgres/postgres.ts";
import type { Handler } from "hono";
import { unitSchema } from "../../points/fields.ts";
import { balancesSchema, findBalances } from "../../points/list_balances.ts";
import { findTransactions, transactionsSchema } from "../../points/list_transactions.ts";
import { reservationColumns, type ReservationLook, reservationSchema } from "./reservations.ts";

// What a user has in points: balances, what is reserved, and the statement, a page for each call. It
// is for operators, so it shows the reservations of all callers.

const requestSchema = z.object({
  user_id: fieldSchema(),
  unit: unitSchema().optional(),
  ...pageFields(),
});

export type PointsQuery = z.input<typeof requestSchema>;

const answerSchema = z.object({
  user_id: z.string(),
  balances: balancesSchema.shape.balances,
  reservations: z.array(reservationSchema),
  ...transactionsSchema.shape,
}).openapi("PointsOfUser");

export type PointsOfUser = z.infer<typeof answerSchema>;

const reservationsAtMost = 50;

export const pointsOfUserRoute = lookRoute({
  path: "/debug/entitlement/points/user",
  summary: "Points of a user",
  description: `Balances; the first ${reservationsAtMost} reservations ` +
    "that were due a day ago or later, of all callers; and a page of the statement",
  query: requestSchema,
  answer: answerSchema,
  answers: "Transactions, the newest first; empty for an unknown user",
  invalid: "The user_id, unit, limit or cursor is invalid",
});

export function pointsOfUser(database: Database): Handler {
  return async ({ req }) => {
    const request = valid(requestSchema.safeParse(req.query()));
    const { user_id } = request;
    const [balances, reservations, transactions] = await Promise.all([
      findBalances(database, user_id),
      findReservationsOfUser(database, user_id),
      findTransactions(database, request),
    ]);
    return Response.json({ user_id, balances, reservations, ...transactions });
  };
}

function findReservationsOfUser(database: Database, userId: string): Promise<ReservationLook[]> {
  return query<ReservationLook>(
    database,
    `select ${reservationColumns}
     from point_reservations
     where user_id = $1
       and point_reservations.execute_at >= now() - interval '1 day'
     order by point_reservations.execute_at, id
     limit $2`,
    [userId, reservationsAtMost],
  );
}
