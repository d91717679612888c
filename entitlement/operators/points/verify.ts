import { z } from "@hono/zod-openapi";
import { readCursor, writeCursor } from "@kenri/shared/http/cursor.ts";
import { fieldSchema } from "@kenri/shared/http/fields.ts";
import { lookRoute } from "@kenri/shared/operators/look_route.ts";
import { valid } from "@kenri/shared/operators/operations.ts";
import type { Database } from "@kenri/shared/postgres/postgres.ts";
import type { Handler } from "hono";
import { findBounds } from "../../audit/bounds.ts";
import { checkBalances, checkReservations, checkTransactions, kinds } from "./checks.ts";

// Verifies that each balance is the sum of its transactions and its version their number, that each
// transaction has an audit row, and that each reservation of points that is done has its
// transaction. The caller adds up the figures of all pages. Each row is compared only with the one
// before it, so a balance of a million transactions is verified in pages as well.

const rowsAtOnce = 2_000;

const requestSchema = z.object({
  user_id: fieldSchema().optional(),
  cursor: z.string().optional().openapi({ description: "The `next_cursor` of the previous page" }),
});

export type PointsVerifyQuery = z.input<typeof requestSchema>;

const problemSchema = z.object({
  kind: z.enum(kinds),
  user_id: z.string(),
  unit: z.string(),
  version: z.int().nullable(),
  id: z.uuid().nullable().openapi({ description: "Of the transaction or the reservation" }),
}).openapi("PointsProblem");

export type PointsProblem = z.infer<typeof problemSchema>;

const answerSchema = z.object({
  balances: z.int(),
  transactions: z.int(),
  reservations: z.int().openapi({ description: "Those of points that are done" }),
  problems: z.array(problemSchema),
  next_cursor: z.string().optional(),
}).openapi("VerifiedPoints");

export type PointsVerified = z.infer<typeof answerSchema>;

export const verifyPointsRoute = lookRoute({
  path: "/debug/entitlement/points/verify",
  summary: "Verify the points",
  description: "Whether balances, transactions, audit rows and reservations agree",
  query: requestSchema,
  answer: answerSchema,
  answers: "One page of rows, verified; first balances, then transactions, then reservations",
  invalid: "The user_id or cursor is invalid",
});

const checks = {
  balances: checkBalances,
  transactions: checkTransactions,
  reservations: checkReservations,
};
const steps = ["balances", "transactions", "reservations"] as const;
const cursorSchema = z.tuple([z.enum(steps), z.array(z.union([z.string(), z.int()])).max(4)]);

export function verifyPoints(database: Database, limit = rowsAtOnce): Handler {
  return async ({ req }) => {
    const { user_id, cursor } = valid(requestSchema.safeParse(req.query()));
    const [step, after] = readCursor(cursor, cursorSchema) ?? [steps[0], []];
    const { dropped_until } = await findBounds(database);
    const { checked, problems, last } = await checks[step](database, {
      userId: user_id,
      after,
      limit,
      auditedSince: dropped_until,
    });
    const next = steps[steps.indexOf(step) + 1];
    return Response.json({
      ...{ balances: 0, transactions: 0, reservations: 0 },
      [step]: checked,
      problems,
      next_cursor: last
        ? writeCursor([step, last])
        : next === undefined
        ? undefined
        : writeCursor([next, []]),
    });
  };
}
