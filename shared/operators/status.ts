import { z } from "@hono/zod-openapi";
import type { ScopedRoute } from "../http/openapi.ts";
import { type Database, query, utc } from "../postgres/postgres.ts";
import type { AnyTable } from "../queue/leased_table.ts";
import { countSchema } from "./dead_letters.ts";

// What an operator wants to know first about a service: does it flow, what waits, what failed
// for good.

export const countedAtMost = 10_000;
const shownAtMost = 20;

export const statusFields = {
  waiting: z.int().openapi({ description: `Counted up to ${countedAtMost}` }),
  oldest_waiting_seconds: z.number().nullable(),
  nats: z.boolean(),
  errors: z.array(countSchema),
};

export const waitingRowFields = {
  aggregate_key: z.string(),
  status: z.string(),
  created_at: z.string(),
  attempt_count: z.int(),
  next_retry_at: z.string().nullable(),
  locked_by: z.string().nullable(),
  lease_until: z.string().nullable(),
  last_error: z.string().nullable(),
};

export function serviceStatusRoute(
  service: string,
  rows: string,
  schema: z.ZodType,
): ScopedRoute {
  return {
    method: "get",
    path: `/debug/${service}/status`,
    scope: "debug:read",
    summary: "Status",
    description:
      `What waits, what failed for good, and the ${shownAtMost} ${rows} that have waited longest`,
    responses: {
      200: {
        description: "The state at this moment",
        content: { "application/json": { schema } },
      },
    },
  };
}

// The rows that have waited longest: the given columns, and those of waitingRowFields.
export function findOldestWaiting<Row extends Record<string, unknown>>(
  database: Database,
  { description: { name, order } }: AnyTable,
  columns: string,
): Promise<Row[]> {
  return query<Row>(
    database,
    `select ${columns}, aggregate_key, status, ${utc("created_at")} as created_at, attempt_count,
       ${utc("next_retry_at")} as next_retry_at, locked_by, ${utc("lease_until")} as lease_until,
       last_error
     from (select * from ${name} where unfinished order by ${order.index.text} limit $1) as oldest`,
    [shownAtMost],
  );
}
