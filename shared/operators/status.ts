import { z } from "@hono/zod-openapi";
import type { ScopedRoute } from "../http/openapi.ts";
import { lookRoute } from "./look_route.ts";
import { type Database, query, utc } from "../postgres/postgres.ts";
import { type Backlog, countBacklog, inTurn } from "../queue/backlog.ts";
import { type AnyTable, columnsOf } from "../queue/leased_table.ts";
import { countSchema } from "./dead_letters.ts";

// What an operator wants to know first about a service: does it flow, what waits, what failed
// for good.

const countedAtMost = 10_000;
const shownAtMost = 20;

export const statusFields = {
  nats: z.boolean(),
  errors: z.array(countSchema),
};

export const rowFields = {
  aggregate_key: z.string(),
  status: z.string(),
  created_at: z.string(),
  attempt_count: z.int(),
  next_retry_at: z.string().nullable(),
  locked_by: z.string().nullable(),
  lease_until: z.string().nullable(),
  last_error: z.string().nullable(),
};

export type WaitingRow = z.infer<z.ZodObject<typeof rowFields>> & {
  event_id?: string | undefined;
  reservation_id?: string;
  order_id?: string;
  version?: number;
};

/** What waits in a queue, as a status shows it. */
export interface Waiting extends Backlog {
  oldest: WaitingRow[];
}

interface WaitingFields<Own extends z.core.$ZodShape> {
  waiting: z.ZodInt;
  oldest_waiting_seconds: z.ZodNullable<z.ZodNumber>;
  oldest: z.ZodArray<z.ZodObject<Own & typeof rowFields>>;
}

export interface WaitingRows<Own extends z.core.$ZodShape> {
  fields: WaitingFields<Own>; // of the status
  read(database: Database): Promise<Backlog & { oldest: Record<string, unknown>[] }>;
}

/**
 * What waits in a table: how many rows, for how long, and the oldest of them with these columns, some
 * of them under another name.
 */
export function waitingRows<Own extends z.core.$ZodShape>(
  table: AnyTable,
  ownColumns: Own,
  columnOf: { [Name in keyof Own]?: string } = {},
): WaitingRows<Own> {
  return {
    fields: {
      waiting: z.int().openapi({ description: `Counted up to ${countedAtMost}` }),
      oldest_waiting_seconds: z.number().nullable(),
      oldest: z.array(z.object({ ...ownColumns, ...rowFields })),
    },
    read: async (database) => {
      const [backlog, oldest] = await Promise.all([
        countBacklog(database, table, countedAtMost),
        findOldest(
          database,
          table,
          Object.keys(ownColumns).map((name) => `${columnOf[name] ?? name} as ${name}`),
        ),
      ]);
      return { ...backlog, oldest };
    },
  };
}

function findOldest(
  database: Database,
  table: AnyTable,
  columns: string[],
): Promise<Record<string, unknown>[]> {
  const { order } = table.description;
  const { attempts, retryAt, error } = columnsOf(table.description);
  return query(
    database,
    `select ${columns.join(", ")}, aggregate_key, status, ${utc(order.turn.text)} as created_at,
       ${attempts.text} as attempt_count, ${utc(retryAt.text)} as next_retry_at, locked_by,
       ${utc("lease_until")} as lease_until, ${error.text} as last_error
     from (select * ${inTurn(table).text} limit $1) as oldest`,
    [shownAtMost],
  );
}

export function serviceStatusRoute(
  service: string,
  rows: string,
  schema: z.ZodType,
): ScopedRoute {
  return lookRoute({
    path: `/debug/${service}/status`,
    summary: "Status",
    description:
      `What waits, what failed for good, and the ${shownAtMost} ${rows} that have waited longest`,
    answer: schema,
    answers: "The state at this moment",
  });
}
