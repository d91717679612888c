import { z } from "@hono/zod-openapi";
import {
  lastPosition,
  pageFields,
  pageOf,
  type Position,
  positionSchema,
  readCursor,
} from "@kenri/shared/http/cursor.ts";
import { errorAnswer, fieldSchema } from "@kenri/shared/http/fields.ts";
import type { ScopedRoute } from "@kenri/shared/http/openapi.ts";
import { pathPart } from "@kenri/shared/http/route.ts";
import { valid } from "@kenri/shared/operators/operations.ts";
import { type Database, query, utc } from "@kenri/shared/postgres/postgres.ts";
import { type Sql, sql } from "@kenri/shared/postgres/sql.ts";
import type { Handler } from "hono";
import { transactionExample, transactionSchema, unitSchema } from "./fields.ts";

const requestSchema = z.object({
  user_id: fieldSchema().openapi({
    description: "The user whose transactions are listed",
    example: "ann",
  }),
  unit: unitSchema().optional().openapi({ description: "Only transactions in this unit" }),
  ...pageFields(),
});

export const transactionsSchema = z.object({
  transactions: z.array(transactionSchema),
  next_cursor: z.string().optional(),
}).openapi("PointTransactions");

export const transactionsRoute: ScopedRoute = {
  method: "get",
  path: "/v1/users/{user_id}/points/transactions",
  scope: "points:read",
  operationId: "listPointTransactions",
  tags: ["Points"],
  summary: "All transactions of a user",
  description: "The newest transaction first. New transactions don't shift the pages.",
  request: {
    params: requestSchema.pick({ user_id: true }),
    query: requestSchema.pick({ unit: true, limit: true, cursor: true }),
  },
  responses: {
    200: {
      description: "Empty for an unknown user; next_cursor is present if there are more",
      content: {
        "application/json": {
          schema: transactionsSchema,
          example: { transactions: [transactionExample] },
        },
      },
    },
    400: errorAnswer("The user_id, unit, limit or cursor is invalid", {
      BAD_REQUEST: "limit must be at most 200",
    }),
  },
};

export function listTransactions(database: Database): Handler {
  return async ({ req }) => {
    const request = valid(
      requestSchema.safeParse({ ...req.query(), user_id: pathPart(req, "user_id") }),
    );
    return Response.json(await findTransactions(database, request));
  };
}

export async function findTransactions(
  database: Database,
  { user_id, unit, limit, cursor }: z.output<typeof requestSchema>,
): Promise<z.output<typeof transactionsSchema>> {
  const found = await query<Row>(
    database,
    unit === undefined
      ? ofUser(user_id, readCursor(cursor, positionSchema) ?? lastPosition, limit + 1)
      : ofUnit(user_id, unit, readCursor(cursor, z.tuple([z.int()]))?.[0], limit + 1),
  );
  const { rows, next_cursor } = pageOf(
    found,
    limit,
    ({ created_at, transaction_id, version }) =>
      unit === undefined ? [created_at, transaction_id] : [version],
  );
  const transactions = rows.map(({ reservation_id, ...row }) => ({
    ...row,
    ...(reservation_id ? { reservation_id } : {}),
  }));
  return { transactions, ...(next_cursor ? { next_cursor } : {}) };
}

type Row = Omit<z.output<typeof transactionSchema>, "reservation_id"> & {
  reservation_id: string | null;
};

const columns = sql`id as transaction_id, kind, unit, point_amount, balance_after, version,
        source as reason, source_id, reservation_id,
        ${utc(sql`created_at`)} as created_at`;

// Each statement reads its rows in the order of an index.
function ofUser(userId: string, [at, id]: Position, limit: number): Sql {
  return sql`
      select ${columns}
      from point_transactions
      where user_id = ${userId}
        and (point_transactions.created_at, id) < (${at}::timestamptz, ${id}::uuid)
      order by point_transactions.created_at desc, id desc
      limit ${limit}`;
}

function ofUnit(userId: string, unit: string, before: number | undefined, limit: number): Sql {
  return sql`
      select ${columns}
      from point_transactions
      where user_id = ${userId}
        and unit = ${unit}
        and version < ${before ?? Number.MAX_SAFE_INTEGER}
      order by version desc
      limit ${limit}`;
}
