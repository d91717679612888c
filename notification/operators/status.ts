import { z } from "@hono/zod-openapi";
import {
  countErrors,
  countSchema,
  type DeadLetters,
} from "@kenri/shared/operators/dead_letters.ts";
import type { ScopedRoute } from "@kenri/shared/http/openapi.ts";
import type { NatsLink } from "@kenri/shared/nats/link.ts";
import { type Database, query, utc } from "@kenri/shared/postgres/postgres.ts";
import type { Handler } from "hono";

// What an operator wants to know first of this half: does it flow, what waits, what was given up.

const countedAtMost = 10_000;
const shownAtMost = 20;

const rowSchema = z.object({
  notification_id: z.uuid(),
  event_id: z.uuid(),
  aggregate_key: z.string(),
  version: z.int(),
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
  nats: z.boolean(),
  undelivered: z.int().nullable().openapi({ description: "Messages the stream still holds ready" }),
  unacknowledged: z.int().nullable(),
  errors: z.array(countSchema),
  oldest: z.array(rowSchema),
}).openapi("DeliveryStatus");

export type DeliveryStatus = z.infer<typeof statusSchema>;

export const statusRoute: ScopedRoute = {
  method: "get",
  path: "/debug/notification/status",
  scope: "debug:read",
  summary: "Status",
  description:
    `What waits, what was given up, and the ${shownAtMost} notifications waiting longest`,
  responses: {
    200: {
      description: "As it is at this moment",
      content: { "application/json": { schema: statusSchema } },
    },
  },
};

export interface ConsumerName {
  stream: string;
  durable: string;
}

export function status(
  database: Database,
  tables: DeadLetters[],
  link: NatsLink,
  consumer: ConsumerName,
): Handler {
  return async () => {
    const [[counts], oldest, errors, lag] = await Promise.all([
      countWaiting(database),
      findOldest(database),
      countErrors(tables),
      lagOf(link, consumer),
    ]);
    return Response.json({ ...counts, ...lag, errors, oldest });
  };
}

// Without NATS the rest is worth telling all the same.
async function lagOf(link: NatsLink, { stream, durable }: ConsumerName) {
  const unknown = { nats: link.connected, undelivered: null, unacknowledged: null };
  try {
    const manager = await link.current?.connection.jetstreamManager();
    const info = await manager?.consumers.info(stream, durable);
    if (!info) return unknown;
    return { nats: true, undelivered: info.num_pending, unacknowledged: info.num_ack_pending };
  } catch {
    return unknown;
  }
}

interface Counts extends Record<string, unknown> {
  waiting: number;
  oldest_waiting_seconds: number | null;
}

function countWaiting(database: Database): Promise<Counts[]> {
  return query<Counts>(
    database,
    `select
       (select count(*)
        from (select from notifications where unfinished limit $1) as waiting) as waiting,
       (select extract(epoch from now() - created_at)::float8
        from notifications
        where unfinished
        order by created_at, version
        limit 1) as oldest_waiting_seconds`,
    [countedAtMost],
  );
}

function findOldest(database: Database): Promise<z.infer<typeof rowSchema>[]> {
  return query<z.infer<typeof rowSchema>>(
    database,
    `select notification_id, event_id, aggregate_key, version, status,
       ${utc("created_at")} as created_at, attempt_count, ${utc("next_retry_at")} as next_retry_at,
       locked_by, ${utc("lease_until")} as lease_until, last_error
     from notifications
     where unfinished
     order by notifications.created_at, version
     limit $1`,
    [shownAtMost],
  );
}
