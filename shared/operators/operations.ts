import { z } from "@hono/zod-openapi";
import type { Context, Handler } from "hono";
import { pageFields, pageOf, readCursor } from "../http/cursor.ts";
import type { ScopedRoute } from "../http/openapi.ts";
import { ApiError } from "../http/errors.ts";
import { errorAnswer, fieldSchema, isStorableTime, problemsOf } from "../http/fields.ts";
import { type Database, query, utc } from "../postgres/postgres.ts";
import { readJson } from "../http/body.ts";
import { uuidv7 } from "../process/uuid.ts";

// What an operator changes by hand. Each operation says who and why, and is kept in a table.

export const operationFields = {
  who: fieldSchema().openapi({ description: "Whoever shows a credential is its name instead" }),
  reason: fieldSchema(),
  dry_run: z.boolean("must be true or false").default(false),
};

// A time as people write it.
export function momentSchema(): z.ZodISODateTime {
  return z.iso.datetime({ offset: true, error: "must be a time such as 2026-01-02T03:04:05Z" })
    .refine(
      isStorableTime,
      "must be after the year 0, offset by less than 16 hours, in 40 characters",
    );
}

export interface Operation {
  id: string;
  who: string;
  reason: string;
}

export function newOperation({ who, reason }: { who: string; reason: string }): Operation {
  return { id: uuidv7(), who, reason };
}

// Who has shown a credential can't be somebody else.
export async function readOperation<Schema extends z.ZodType>(
  { req, get }: Context,
  schema: Schema,
): Promise<z.output<Schema>> {
  const body = await readJson(req.raw);
  const who = get("caller")?.name;
  const isSigned = who && typeof body === "object" && body !== null;
  return valid(schema.safeParse(isSigned ? { ...body, who } : body));
}

export function valid<Value>(parsed: z.ZodSafeParseResult<Value>): Value {
  if (!parsed.success) throw new ApiError("BAD_REQUEST", problemsOf(parsed.error));
  return parsed.data;
}

export function operationRoute(
  path: string,
  summary: string,
  description: string,
  body: z.ZodType,
  answer: z.ZodType,
): ScopedRoute {
  return {
    method: "post",
    path,
    scope: "operations:write",
    summary,
    description,
    request: { body: { required: true, content: { "application/json": { schema: body } } } },
    responses: {
      200: {
        description: "What was done, or with dry_run would be; nothing is no error",
        content: { "application/json": { schema: answer } },
      },
      400: errorAnswer("The body or a field is missing or bad"),
      408: errorAnswer("The body took too long to arrive"),
      413: errorAnswer("The body is over 16 KiB"),
      415: errorAnswer("The body is not JSON"),
    },
  };
}

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
  return {
    method: "get",
    path: `/debug/${service}/operations`,
    scope: "debug:read",
    summary: "Record of operations",
    description: "What operators have changed: who, when, why, and from which state",
    request: { query: listRequest },
    responses: {
      200: {
        description: "The newest first",
        content: { "application/json": { schema: pageSchema } },
      },
      400: errorAnswer("The limit or cursor is bad"),
    },
  };
}

export function listOperations(database: Database): Handler {
  return async ({ req }) => {
    const { limit, cursor } = valid(listRequest.safeParse(req.query()));
    const [before] = readCursor(cursor, z.tuple([z.uuid()])) ?? [];
    const found = await findOperations(database, before, limit + 1);
    const { rows, next_cursor } = pageOf(found, limit, ({ operation_id }) => [operation_id]);
    return Response.json({ operations: rows, next_cursor });
  };
}

// The ids begin with the time.
function findOperations(
  database: Database,
  before: string | undefined,
  limit: number,
): Promise<OperationRecord[]> {
  return query<OperationRecord>(
    database,
    `select operation_id, ${utc("done_at")} as done_at, kind, layer, who, reason, items
     from operations
     where operation_id < $1
     order by operation_id desc
     limit $2`,
    [before ?? "ffffffff-ffff-ffff-ffff-ffffffffffff", limit],
  );
}
