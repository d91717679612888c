import { z } from "@hono/zod-openapi";
import type { Handler } from "hono";
import { lastId, pageFields, pageOf, readCursor } from "../http/cursor.ts";
import type { ScopedRoute } from "../http/openapi.ts";
import { lookRoute } from "./look_route.ts";
import { type Database, query, utc } from "../postgres/postgres.ts";
import { valid } from "./operations.ts";

// The log of what operators have changed.

const listRequest = z.object(pageFields());

const recordSchema = z.object({
  operation_id: z.uuid(),
  done_at: z.string(),
  kind: z.string(),
  layer: z.string(),
  who: z.string(),
  reason: z.string(),
  items: z.array(z.record(z.string(), z.unknown())),
}).openapi("Operation");

export type OperationRecord = z.infer<typeof recordSchema>;

const pageSchema = z.object({
  operations: z.array(recordSchema),
  next_cursor: z.string().optional(),
});

export type OperationPage = z.infer<typeof pageSchema>;
export type OperationsQuery = z.input<typeof listRequest>;

export function operationsRoute(service: string): ScopedRoute {
  return lookRoute({
    path: `/debug/${service}/operations`,
    summary: "Log of operations",
    description: "What operators have changed: who, when, why, and the state before",
    query: listRequest,
    answer: pageSchema,
    answers: "The newest first",
    invalid: "The limit or cursor is invalid",
  });
}

/** The newest first, of those before an operation, if one is given. */
export type FindOperations = (
  before: string | undefined,
  limit: number,
) => Promise<OperationRecord[]>;

export function listOperations(find: FindOperations): Handler {
  return async ({ req }) => {
    const { limit, cursor } = valid(listRequest.safeParse(req.query()));
    const [before] = readCursor(cursor, z.tuple([z.uuid()])) ?? [];
    const found = await find(before, limit + 1);
    const { rows, next_cursor } = pageOf(found, limit, ({ operation_id }) => [operation_id]);
    return Response.json({ operations: rows, next_cursor });
  };
}

// The ids begin with the time, so their order is that of the operations.
export function operationsIn(database: Database): FindOperations {
  return (before, limit) =>
    query<OperationRecord>(
      database,
      `select operation_id, ${utc("done_at")} as done_at, kind, layer, who, reason, items
       from operations
       where operation_id < $1
       order by operation_id desc
       limit $2`,
      [before ?? lastId, limit],
    );
}
