import { z } from "@hono/zod-openapi";
import { pageFields, pageOf, readCursor } from "@kenri/shared/http/cursor.ts";
import { fieldSchema } from "@kenri/shared/http/fields.ts";
import { lookRoute } from "@kenri/shared/operators/look_route.ts";
import { valid } from "@kenri/shared/operators/operations.ts";
import { type Database, query, utc } from "@kenri/shared/postgres/postgres.ts";
import type { Handler } from "hono";
import { reservationColumns, type ReservationLook, reservationSchema } from "./reservations.ts";

// What a user has in points: balances, what is reserved, and the statement, a page for each call. It
// is for operators, so it shows the reservations of all callers.

const requestSchema = z.object({
  user_id: fieldSchema(),
  unit: z.string().regex(/^[a-z0-9._-]{1,64}$/, "must be 1 to 64 of a-z, 0-9, '.', '_', '-'"),
  ...pageFields(),
}).partial({ unit: true });

export type PointsQuery = z.input<typeof requestSchema>;

const balanceSchema = z.object({
  unit: z.string(),
  balance: z.int(),
  version: z.int(),
  updated_at: z.string(),
}).openapi("BalanceLook");

const transactionSchema = z.object({
  transaction_id: z.uuid(),
  unit: z.string(),
  kind: z.enum(["GRANT", "SPEND"]),
  point_amount: z.int(),
  balance_after: z.int(),
  version: z.int(),
  reason: z.string(),
  source_id: z.string(),
  reservation_id: z.uuid().nullable(),
  created_at: z.string(),
}).openapi("TransactionLook");

const answerSchema = z.object({
  user_id: z.string(),
  balances: z.array(balanceSchema),
  reservations: z.array(reservationSchema),
  transactions: z.array(transactionSchema),
  next_cursor: z.string().optional(),
}).openapi("PointsOfUser");

export type PointsOfUser = z.infer<typeof answerSchema>;
type Balance = z.infer<typeof balanceSchema>;
type TransactionLook = z.infer<typeof transactionSchema>;

const balancesAtMost = 200;
const reservationsAtMost = 50;

export const pointsOfUserRoute = lookRoute({
  path: "/debug/entitlement/points/user",
  summary: "Points of a user",
  description: `At most ${balancesAtMost} balances; the first ${reservationsAtMost} reservations ` +
    "that were due a day ago or later, of all callers; and a page of the statement",
  query: requestSchema,
  answer: answerSchema,
  answers: "Transactions, the newest first; empty for an unknown user",
  invalid: "The user_id, unit, limit or cursor is invalid",
});

export function pointsOfUser(database: Database): Handler {
  return async ({ req }) => {
    const { user_id, unit, limit, cursor } = valid(requestSchema.safeParse(req.query()));
    const before = readCursor(cursor, positionSchema);
    const [balances, reservations, found] = await Promise.all([
      findBalances(database, user_id),
      findReservationsOfUser(database, user_id),
      unit === undefined
        ? findTransactions(database, user_id, before, limit + 1)
        : findTransactionsIn(database, user_id, unit, before?.[2], limit + 1),
    ]);
    const { rows, next_cursor } = pageOf(
      found,
      limit,
      ({ created_at, transaction_id, version }) => [created_at, transaction_id, version],
    );
    return Response.json({ user_id, balances, reservations, transactions: rows, next_cursor });
  };
}

// The first two are the position in the whole statement, the last one that in a unit.
const positionSchema = z.tuple([z.iso.datetime({ precision: 6 }), z.uuid(), z.int()]);

function findBalances(database: Database, userId: string): Promise<Balance[]> {
  return query<Balance>(
    database,
    `select unit, balance, version, ${utc("updated_at")} as updated_at
     from point_root
     where user_id = $1
     order by unit
     limit $2`,
    [userId, balancesAtMost],
  );
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

const columns = `id as transaction_id, unit, kind, point_amount, balance_after, version,
       source as reason, source_id, reservation_id,
       ${utc("point_transactions.created_at")} as created_at`;

function findTransactions(
  database: Database,
  userId: string,
  before: [string, string, number] | undefined,
  limit: number,
): Promise<TransactionLook[]> {
  return query<TransactionLook>(
    database,
    `select ${columns}
     from point_transactions
     where user_id = $1
       and (point_transactions.created_at, id) < ($2::timestamptz, $3::uuid)
     order by point_transactions.created_at desc, id desc
     limit $4`,
    [
      userId,
      before?.[0] ?? "infinity",
      before?.[1] ?? "ffffffff-ffff-ffff-ffff-ffffffffffff",
      limit,
    ],
  );
}

function findTransactionsIn(
  database: Database,
  userId: string,
  unit: string,
  before: number | undefined,
  limit: number,
): Promise<TransactionLook[]> {
  return query<TransactionLook>(
    database,
    `select ${columns}
     from point_transactions
     where user_id = $1
       and unit = $2
       and version < $3
     order by version desc
     limit $4`,
    [userId, unit, before ?? "9223372036854775807", limit],
  );
}
