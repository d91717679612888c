import { z } from "@hono/zod-openapi";
import {
  countErrors,
  countSchema,
  type DeadLetters,
} from "@kenri/shared/operators/dead_letters.ts";
import type { ScopedRoute } from "@kenri/shared/http/openapi.ts";
import { type Database, query, utc } from "@kenri/shared/postgres/postgres.ts";
import type { Handler } from "hono";
import { findState } from "../reconciliation/on_demand.ts";

// What an operator wants to know first of this half: does it flow, what waits, what was given up.

const countedAtMost = 10_000;
const shownAtMost = 20;

const rowSchema = z.object({
  event_id: z.uuid(),
  aggregate_key: z.string(),
  status: z.string(),
  created_at: z.string(),
  attempt_count: z.int(),
  next_retry_at: z.string().nullable(),
  locked_by: z.string().nullable(),
  lease_until: z.string().nullable(),
  last_error: z.string().nullable(),
});

const statusSchema = z.object({
  waiting: z.int().openapi({ description: `Counted up to ${countedAtMost}` }),
  oldest_waiting_seconds: z.number().nullable(),
  last_published_at: z.string().nullable(),
  nats: z.boolean(),
  errors: z.array(countSchema),
  proven_until: z.string(),
  checked_at: z.string(),
  unreceived: z.int(),
  oldest: z.array(rowSchema),
}).openapi("OutboxStatus");

export type OutboxStatus = z.infer<typeof statusSchema>;

export const statusRoute: ScopedRoute = {
  method: "get",
  path: "/debug/entitlement/status",
  scope: "debug:read",
  summary: "Status",
  description: `What waits, what was given up, and the ${shownAtMost} events that wait longest`,
  responses: {
    200: {
      description: "As it is at this moment",
      content: { "application/json": { schema: statusSchema } },
    },
  },
};

export function status(
  database: Database,
  tables: DeadLetters[],
  natsIsThere: () => boolean,
): Handler {
  return async () => {
    const [[counts], oldest, [state], errors] = await Promise.all([
      countWaiting(database),
      findOldest(database),
      findState(database),
      countErrors(tables),
    ]);
    return Response.json({ ...counts, nats: natsIsThere(), errors, ...state, oldest });
  };
}

interface Counts extends Record<string, unknown> {
  waiting: number;
  oldest_waiting_seconds: number | null;
  last_published_at: string | null;
  unreceived: number;
}

function countWaiting(database: Database): Promise<Counts[]> {
  return query<Counts>(
    database,
    `select
       (select count(*)
        from (select from outbox_events where unfinished limit $1) as waiting) as waiting,
       (select extract(epoch from now() - created_at)::float8
        from outbox_events
        where unfinished
        order by created_at
        limit 1) as oldest_waiting_seconds,
       (select ${utc("published_at")}
        from outbox_events
        where published_at is not null
        order by outbox_events.published_at desc
        limit 1) as last_published_at,
       (select count(*)
        from (select from unreceived_events limit $1) as open) as unreceived`,
    [countedAtMost],
  );
}

function findOldest(database: Database): Promise<z.infer<typeof rowSchema>[]> {
  return query<z.infer<typeof rowSchema>>(
    database,
    `select event_id, aggregate_key, status, ${utc("created_at")} as created_at, attempt_count,
       ${utc("next_retry_at")} as next_retry_at, locked_by, ${utc("lease_until")} as lease_until,
       last_error
     from outbox_events
     where unfinished
     order by outbox_events.created_at
     limit $1`,
    [shownAtMost],
  );
}
