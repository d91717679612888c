import { z } from "@hono/zod-openapi";
import { Buffer } from "node:buffer";
import { ApiError } from "./errors.ts";
import { textSchema } from "./fields.ts";

// Long lists are answered in pages. A cursor names the last row of a page, so rows that are added
// meanwhile do not shift the next page.

const defaultLimit = 50;
const maxLimit = 200;

// deno-lint-ignore explicit-module-boundary-types
export function pageFields() {
  return {
    limit: z.coerce.number({ error: "must be a number" })
      .int("must be a whole number").min(1, "must be at least 1")
      .max(maxLimit, `must be at most ${maxLimit}`).default(defaultLimit)
      .openapi({ description: "Maximum number of entries in this page" }),
    cursor: z.string().optional().openapi({ description: "`next_cursor` of the previous page" }),
  };
}

export interface Page<Row> {
  rows: Row[];
  next_cursor: string | undefined; // present only if there are more rows
}

// `found` contains one row more than the limit if there is a next page.
export function pageOf<Row>(
  found: Row[],
  limit: number,
  positionOf: (row: Row) => unknown[],
): Page<Row> {
  const rows = found.slice(0, limit);
  const last = rows.at(-1);
  return {
    rows,
    next_cursor: found.length > limit && last ? writeCursor(positionOf(last)) : undefined,
  };
}

export function writeCursor(position: unknown[]): string {
  return Buffer.from(JSON.stringify(position)).toString("base64url");
}

export function readCursor<Schema extends z.ZodType>(
  cursor: string | undefined,
  schema: Schema,
): z.output<Schema> | undefined {
  if (cursor === undefined) return undefined;
  try {
    const written = Buffer.from(cursor, "base64url").toString();
    return schema.parse(JSON.parse(written, (_, value) => storable(value)));
  } catch {
    throw new ApiError("BAD_REQUEST", "cursor must be a next_cursor of this service");
  }
}

// PostgreSQL accepts no other text as a parameter, whatever the schema allows.
const storableText = textSchema();

function storable(value: unknown): unknown {
  return typeof value === "string" ? storableText.parse(value) : value;
}

// PostgreSQL has no year 0.
export function timeSchema(): z.ZodISODateTime {
  return z.iso.datetime({ precision: 6 }).regex(/^(?!0000)/);
}

// The position of a row in a list that is ordered by time and id, and those before and after all rows.
export const positionSchema: z.ZodTuple<[z.ZodISODateTime, z.ZodUUID], null> = z.tuple([
  timeSchema(),
  z.uuid(),
]);

export type Position = z.output<typeof positionSchema>;

export const firstId = "00000000-0000-0000-0000-000000000000";
export const lastId = "ffffffff-ffff-ffff-ffff-ffffffffffff";
export const firstPosition: Position = ["0001-01-01T00:00:00.000000Z", firstId];
export const lastPosition: Position = ["9999-12-31T23:59:59.999999Z", lastId];
