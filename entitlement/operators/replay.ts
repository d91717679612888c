import { z } from "@hono/zod-openapi";
import { ApiError } from "@kenri/shared/http/errors.ts";
import {
  momentSchema,
  newOperation,
  type Operation,
  operationFields,
  operationRoute,
  readOperation,
} from "@kenri/shared/operators/operations.ts";
import { type Database, query } from "@kenri/shared/postgres/postgres.ts";
import type { Wakeup } from "@kenri/shared/process/signals.ts";
import type { Handler } from "hono";
import { renewsKey } from "../outbox.ts";

// Publishes again what was published in a range of time, a batch for each call, the oldest first.
// What was put back leaves the range, so repeating the call goes on, and ends. Who received an event
// already removes it as a duplicate.

const bodySchema = z.object({
  from: momentSchema(),
  to: momentSchema(),
  limit: z.int("must be a whole number").min(1, "must be at least 1")
    .max(1_000, "must be at most 1000").default(500),
  ...operationFields,
});

export type ReplayBody = z.input<typeof bodySchema>;

const answerSchema = z.object({
  operation_id: z.uuid().nullable(),
  replayed: z.int().openapi({ description: "With dry_run: would be, by all calls together" }),
  complete: z.boolean().openapi({ description: "Whether nothing is left to replay or to count" }),
}).openapi("Replayed");

export type ReplayAnswer = z.infer<typeof answerSchema>;

export const replayRoute = operationRoute(
  "/operations/entitlement/replay",
  "Replay events",
  "Publishes again what was published in a range of time, one batch a call; repeat until complete",
  bodySchema,
  answerSchema,
);

export function replay(database: Database, wakeRelay: Wakeup): Handler {
  return async (context) => {
    const { from, to, limit, who, reason, dry_run } = await readOperation(context, bodySchema);
    if (Date.parse(from) > Date.parse(to)) {
      throw new ApiError("BAD_REQUEST", "from must not be after to");
    }
    // What is published from now on would be in the range again.
    if (await isFuture(database, to)) {
      throw new ApiError("BAD_REQUEST", "to must not be in the future");
    }
    if (dry_run) {
      const count = await countPublished(database, from, to, countedAtMost + 1);
      const complete = count <= countedAtMost;
      const replayed = Math.min(count, countedAtMost);
      return Response.json({ operation_id: null, replayed, complete });
    }
    const operation = newOperation({ who, reason });
    const { found, replayed } = await putBackSome(database, { from, to, limit }, operation);
    if (replayed > 0) wakeRelay.trigger();
    return Response.json({
      operation_id: replayed > 0 ? operation.id : null,
      replayed,
      complete: found < limit,
    });
  };
}

// By the clock that sets published_at.
async function isFuture(database: Database, time: string): Promise<boolean> {
  const [answer] = await query<{ is_future: boolean }>(
    database,
    `select $1::timestamptz > clock_timestamp() as is_future`,
    [time],
  );
  return answer?.is_future ?? true;
}

const countedAtMost = 100_000;

async function countPublished(
  database: Database,
  from: string,
  to: string,
  limit: number,
): Promise<number> {
  const [found] = await query<{ count: number }>(
    database,
    `select count(*) as count
     from (
       select from outbox_events
       where published_at >= $1 and published_at <= $2
       limit $3
     ) as published`,
    [from, to, limit],
  );
  return found?.count ?? 0;
}

interface Batch {
  from: string;
  to: string;
  limit: number;
}

// A client that repeats the call until it is complete treats a call that replays nothing as an error. So
// when somebody else has put back the whole batch in the meantime, the next batch follows at once.
async function putBackSome(
  database: Database,
  batch: Batch,
  operation: Operation,
): Promise<{ found: number; replayed: number }> {
  for (;;) {
    const counts = await putBackPublished(database, batch, operation);
    if (counts.replayed > 0 || counts.found < batch.limit) return counts;
  }
}

// The oldest rows are found first, and locked in the order of their ids, like everywhere that events
// are put back. Rows that somebody else has put back in the meantime are found but not replayed.
export async function putBackPublished(
  database: Database,
  { from, to, limit }: Batch,
  { id, who, reason }: Operation,
): Promise<{ found: number; replayed: number }> {
  const [counts] = await query<{ found: number; replayed: number }>(
    database,
    `with found as materialized (
       select event_id
       from outbox_events
       where status = 'PUBLISHED'
         and published_at >= $1 and published_at <= $2
       order by published_at
       limit $3
     ), published as (
       select row.event_id, row.stream_seq
       from found
       join outbox_events row
         on row.event_id = found.event_id
         and row.status = 'PUBLISHED'
         and row.published_at >= $1 and row.published_at <= $2
       order by row.event_id
       for update of row
     ), recorded as (
       insert into outbox_attempts (event_id, outcome, stream_seq, operation_id)
       select event_id, 'REPLAYED', stream_seq, $4 from published
     ), operation as (
       insert into operations (operation_id, kind, layer, who, reason, items)
       select $4, 'REPLAY', 'outbox', $5, $6,
         jsonb_agg(jsonb_build_object(
           'event_id', event_id, 'from', 'PUBLISHED', 'stream_seq', stream_seq))
       from published
       having count(*) > 0
     ), put_back as (
       update outbox_events row
       set status = 'PENDING', attempt_count = 0, published_at = null,
         stream_generation = null, stream_seq = null,
         ${renewsKey}
       from published
       where row.event_id = published.event_id
       returning row.event_id
     )
     select (select count(*) from found) as found, (select count(*) from put_back) as replayed`,
    [from, to, limit, id, who, reason],
  );
  return counts ?? { found: 0, replayed: 0 };
}
