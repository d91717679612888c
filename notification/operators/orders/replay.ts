import { z } from "@hono/zod-openapi";
import { readCursor, writeCursor } from "@kenri/shared/http/cursor.ts";
import { ApiError } from "@kenri/shared/http/errors.ts";
import { fieldSchema } from "@kenri/shared/http/fields.ts";
import {
  momentSchema,
  newOperation,
  operationFields,
  operationRoute,
  readOperation,
} from "@kenri/shared/operators/operations.ts";
import {
  type Database,
  query,
  type Transaction,
  transaction,
} from "@kenri/shared/postgres/postgres.ts";
import { sql } from "@kenri/shared/postgres/sql.ts";
import type { Wakeup } from "@kenri/shared/process/signals.ts";
import type { Handler } from "hono";
import { positionSchema } from "../../endpoints/replay.ts";
import { findReplayable, replayOrders } from "../../endpoints/store_replays.ts";

// An operator has orders of an endpoint sent again, as its owner can (endpoints/replay.ts): a batch for
// each call, with the same ids.

const bodySchema = z.object({
  endpoint_id: z.uuid("must be a UUID").transform((id) => id.toLowerCase()),
  from: momentSchema(),
  to: momentSchema(),
  event_types: z.array(fieldSchema()).max(100, "must name at most 100").nullish(),
  only: z.enum(["FAILED", "ALL"], "must be FAILED or ALL").default("FAILED"),
  cursor: z.string().optional(),
  ...operationFields,
});

export type ReplayOfBody = z.input<typeof bodySchema>;

const answerSchema = z.object({
  operation_id: z.uuid().nullable(),
  replayed: z.int().openapi({ description: "With dry_run: those that would be replayed" }),
  next_cursor: z.string().optional(),
}).openapi("ReplayedOrders");

export type ReplayOfAnswer = z.infer<typeof answerSchema>;

export const replayOfRoute = operationRoute(
  "/operations/notification/endpoints/replay",
  "Replay an endpoint",
  "Sends the orders of a range of time again, a batch for each call; repeat with next_cursor. With " +
    "FAILED those that were given up, with ALL also those that succeeded",
  bodySchema,
  answerSchema,
);

export function replayOf(database: Database, wakeOrders: Wakeup): Handler {
  return async (context) => {
    const { endpoint_id: id, from, to, event_types, only, cursor, dry_run, who, reason } =
      await readOperation(context, bodySchema);
    const after = readCursor(cursor, positionSchema);
    const range = { id, from, to, eventTypes: event_types ?? null, only, dryRun: dry_run, after };
    const operation = newOperation({ who, reason });
    const { replayed, next } = await transaction(database, async (tx) => {
      const parks = await lockEndpoint(tx, id);
      const { orderIds, next } = await findReplayable(tx, range);
      if (!dry_run && orderIds.length > 0) {
        await replayOrders(tx, [{ kind: "replayed", endpointId: id, orderIds, parks, operation }]);
      }
      return { replayed: orderIds.length, next };
    });
    const changed = !dry_run && replayed > 0;
    if (changed) wakeOrders.trigger();
    return Response.json({
      operation_id: changed ? operation.id : null,
      replayed,
      ...next ? { next_cursor: writeCursor(next) } : {},
    });
  };
}

// Its state can't change until the transaction ends. Returns whether its orders are parked.
async function lockEndpoint(tx: Transaction, id: string): Promise<boolean> {
  const [found] = await query<{ parks: boolean }>(
    tx,
    sql`
    select state <> 'ACTIVE' or is_draining as parks
    from endpoints
    where endpoint_id = ${id}
      and state <> 'DELETED'
    for update`,
  );
  if (!found) throw new ApiError("BAD_REQUEST", "endpoint_id is not the id of an endpoint");
  return found.parks;
}
