import { z } from "@hono/zod-openapi";
import { ApiError } from "@kenri/shared/http/errors.ts";
import {
  momentSchema,
  newOperation,
  operationFields,
  operationRoute,
  readOperation,
} from "@kenri/shared/operators/operations.ts";
import { republishRange } from "@kenri/shared/outbox/republish_range.ts";
import { type Database, query } from "@kenri/shared/postgres/postgres.ts";
import type { Wakeup } from "@kenri/shared/process/signals.ts";
import type { Handler } from "hono";
import { outbox } from "../outbox.ts";

// Republishes the events that were published in a range of time, a batch for each call. An event
// that is republished is no longer in the range, so each call continues where the last one ended.

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
  replayed: z.int().openapi({
    description: "With dry_run: the events that all calls together would replay",
  }),
  complete: z.boolean().openapi({
    description: "Whether no event is left to replay, or with dry_run to count",
  }),
}).openapi("Replayed");

export type ReplayAnswer = z.infer<typeof answerSchema>;

export const replayRoute = operationRoute(
  "/operations/entitlement/replay",
  "Replay events",
  "Publishes the events of a range of time again, one batch for each call; repeat until complete",
  bodySchema,
  answerSchema,
);

export function replay(database: Database, wakeRelay: Wakeup): Handler {
  return async (context) => {
    const { from, to, limit, who, reason, dry_run } = await readOperation(context, bodySchema);
    if (Date.parse(from) > Date.parse(to)) {
      throw new ApiError("BAD_REQUEST", "from must not be after to");
    }
    // Otherwise the events would be in the range again as soon as they are published.
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
    const { found, republished } = await republishRange(
      database,
      outbox,
      { from, to, limit },
      operation,
    );
    if (republished > 0) wakeRelay.trigger();
    return Response.json({
      operation_id: republished > 0 ? operation.id : null,
      replayed: republished,
      complete: found < limit,
    });
  };
}

// Asks the database, because its clock sets published_at.
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
