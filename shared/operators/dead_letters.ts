import { z } from "@hono/zod-openapi";
import type { Handler } from "hono";
import { pageFields, pageOf, readCursor } from "../http/cursor.ts";
import type { DeadRows } from "./dead_rows.ts";
import type { ScopedRoute } from "../http/openapi.ts";
import { lookRoute } from "./look_route.ts";
import { ApiError } from "../http/errors.ts";
import { textSchema } from "../http/fields.ts";
import { valid } from "./operations.ts";

// Dead letters: rows and messages whose attempts are used up and that need a person. Each layer of
// a service keeps its own, and all are listed in one form.

export interface DeadLetters extends DeadRows<DeadLetter> {
  layer: string;
}

const deadLetterSchema = z.object({
  layer: z.string(),
  id: z.string(),
  event_id: z.string().nullable(),
  reservation_id: z.string().nullish(),
  order_id: z.string().nullish(),
  error: z.string(),
  since: z.string(),
  age_seconds: z.number(),
  attempts: z.int().nullable(),
  payload: z.unknown(),
}).openapi("DeadLetter");

export type DeadLetter = z.infer<typeof deadLetterSchema>;

const pageSchema = z.object({
  dead_letters: z.array(deadLetterSchema),
  next_cursor: z.string().optional(),
});

export type DeadLetterPage = z.infer<typeof pageSchema>;

export const countSchema = z.object({
  layer: z.string(),
  error: z.string(),
  count: z.int(),
  oldest: z.string(),
}).openapi("DeadLettersOfError");

const countsSchema = z.object({ errors: z.array(countSchema) });

export type DeadLetterCounts = z.infer<typeof countsSchema>;

export interface ErrorCount extends Record<string, unknown> {
  error: string;
  count: number;
  oldest: string;
}

const listRequest = z.object({
  layer: z.string().optional(),
  error: textSchema().optional(),
  id: z.string().optional(),
  ...pageFields(),
});

export type DeadLettersQuery = z.input<typeof listRequest>;

export function deadLettersRoute(service: string): ScopedRoute {
  return lookRoute({
    path: `/debug/${service}/dead-letters`,
    summary: "Dead letters",
    description: "The oldest first; filtered by layer, error or id",
    query: listRequest,
    answer: pageSchema,
    answers: "next_cursor is present if there are more",
    invalid: "The layer, id, limit or cursor is invalid",
  });
}

export function listDeadLetters(tables: DeadLetters[]): Handler {
  return async ({ req }) => {
    const { layer, error, id, limit, cursor } = valid(listRequest.safeParse(req.query()));
    const table = tableOf(tables, layer);
    if (id !== undefined) {
      return Response.json({ dead_letters: await table.findByIds([readId(table, id)]) });
    }
    const [after] = readCursor(cursor, z.tuple([table.idSchema])) ?? [];
    const found = await table.find({ after, error, limit: limit + 1 });
    const { rows, next_cursor } = pageOf(found, limit, ({ id }) => [id]);
    return Response.json({ dead_letters: rows, next_cursor });
  };
}

export function tableOf<Table extends DeadLetters>(
  tables: Table[],
  layer: string | undefined,
): Table {
  const table = tables.find((one) => one.layer === (layer ?? tables[0]?.layer));
  if (table) return table;
  const known = tables.map(({ layer }) => layer).join(" or ");
  throw new ApiError("BAD_REQUEST", `layer must be ${known}`);
}

export function readId({ idSchema }: DeadLetters, id: string): string {
  const { success, data } = idSchema.safeParse(id);
  if (!success) throw new ApiError("BAD_REQUEST", "id is not an id of this layer");
  return data;
}

// Enough to see which errors are frequent, and few enough to count at any time.
const countedAtMost = 10_000;

export function errorsRoute(service: string): ScopedRoute {
  return lookRoute({
    path: `/debug/${service}/dead-letters/errors`,
    summary: "Dead letters by error",
    description: `Number of dead letters by error, among the oldest ${countedAtMost} of each layer`,
    answer: countsSchema,
    answers: "The most frequent first",
  });
}

export function listErrors(tables: DeadLetters[]): Handler {
  return async () => Response.json({ errors: await countErrors(tables) });
}

export async function countErrors(tables: DeadLetters[]): Promise<DeadLetterCounts["errors"]> {
  const counts = await Promise.all(tables.map(async ({ layer, countByError }) => {
    const found = await countByError(countedAtMost);
    return found.map((count) => ({ layer, ...count }));
  }));
  return counts.flat();
}
