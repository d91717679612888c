import { z } from "@hono/zod-openapi";
import type { Decision } from "@kenri/shared/commands/answer.ts";
import type { Command } from "@kenri/shared/commands/command.ts";
import type { CommandRoute } from "@kenri/shared/commands/route.ts";
import { readCursor, timeSchema, writeCursor } from "@kenri/shared/http/cursor.ts";
import { ApiError } from "@kenri/shared/http/errors.ts";
import { instantSchema } from "@kenri/shared/http/instant.ts";
import type { Transaction } from "@kenri/shared/postgres/postgres.ts";
import { uuidv7 } from "@kenri/shared/process/uuid.ts";
import { endpointPath, tag, withoutEndpoint } from "./endpoint.ts";
import { eventTypesSchema } from "./fields.ts";
import {
  type Found,
  identityOf,
  key,
  lockEndpoints,
  notFound,
  ofOneEndpoint,
  type OnEndpoint,
  onEndpoint,
} from "./on_endpoint.ts";
import { findReplayable, type Replayable, replayOrders } from "./store_replays.ts";

// A caller has orders of an endpoint sent again, with the same ids. Each call replays a batch, and its
// answer has a cursor for the next one. The cursor knows when the first call was made: what ends after
// that was sent since, so it is not sent again, even if a call is repeated.

const requestSchema = z.object({
  from: instantSchema("Orders made at this time or later"),
  to: instantSchema("Orders made before this time"),
  event_types: eventTypesSchema().nullish(),
  only: z.enum(["FAILED", "ALL"], "must be FAILED or ALL").openapi({
    description: "FAILED: those that were given up. ALL: also those that succeeded",
  }),
  dry_run: z.boolean("must be true or false").nullish().openapi({
    description: "Only count them",
  }),
  cursor: z.string("must be a string").nullish().openapi({
    description: "`next_cursor` of the call before",
  }),
});

const answerSchema = z.object({
  operation_id: z.uuid().nullable().openapi({
    description: "Of this call in the log of operations; null if it changed nothing",
  }),
  found: z.int(),
  replayed: z.int(),
  complete: z.boolean().openapi({ description: "If false, repeat the call with the cursor" }),
  next_cursor: z.string().optional(),
}).openapi("Replayed");

// Which orders, of which endpoint.
export interface ReplayRange {
  id: string;
  from: string;
  to: string;
  eventTypes: string[] | null;
  only: "FAILED" | "ALL";
  dryRun: boolean;
  after: Position | undefined;
}

export interface Replay extends OnEndpoint, ReplayRange {}

// When the replay began, and the last order that was looked at.
export const positionSchema: z.ZodTuple<[z.ZodISODateTime, z.ZodISODateTime, z.ZodUUID], null> = z
  .tuple([timeSchema(), timeSchema(), z.uuid()]);

export type Position = z.output<typeof positionSchema>;

interface Situation extends Found, Replayable {
  operationId: string;
}

export interface Replayed {
  kind: "replayed";
  endpointId: string;
  orderIds: string[];
  parks: boolean;
  operation: { id: string; who: string; reason: string };
}

const example = {
  from: "2026-01-01T00:00:00Z",
  to: "2026-01-02T00:00:00Z",
  only: "FAILED" as const,
};

export const replayRoute: CommandRoute<z.output<typeof requestSchema>, Replay> = {
  route: {
    method: "post",
    path: "/v1/endpoints/{endpoint_id}/replay",
    scope: "endpoints:write",
    operationId: "replayEndpoint",
    tags: [tag],
    summary: "Send webhooks of an endpoint again",
    description:
      "Sends those of a range of time again, the oldest first and with the same ids, so that the receiver " +
      "can tell. Repeat the call with its `next_cursor` until `complete` is true. What still waits to be " +
      "sent is left as it is. While the endpoint is not ACTIVE, they are parked.",
    request: { params: endpointPath },
    responses: {
      200: {
        description: "What was replayed by this call",
        content: {
          "application/json": {
            schema: answerSchema,
            example: {
              operation_id: "019b7c2e-5a7e-7c3a-9a51-7d2f0e6f1a09",
              found: 12,
              replayed: 12,
              complete: true,
            },
          },
        },
      },
      ...withoutEndpoint,
    },
  },
  key,
  body: { schema: requestSchema, example },
  toInput: ({ from, to, event_types, only, dry_run, cursor }, sender, req) => {
    if (to <= from) {
      throw new ApiError("BAD_REQUEST", "to must be later than from");
    }
    return {
      ...onEndpoint(sender, req),
      from,
      to,
      eventTypes: event_types ?? null,
      only,
      dryRun: dry_run ?? false,
      after: readCursor(cursor ?? undefined, positionSchema),
    };
  },
};

export const replayCommand: Command<Replay, Situation, Replayed> = {
  ...ofOneEndpoint,
  name: "replays",
  identityOf: (replay) => {
    const { id, from, to, eventTypes, only, dryRun, after } = replay;
    const asked = JSON.stringify([from, to, eventTypes, only, dryRun, after]);
    return identityOf(replay, ["REPLAY ENDPOINT", id, asked]);
  },
  find: findSituations,
  decide,
  apply: { replayed: replayOrders },
};

async function findSituations(tx: Transaction, replays: Replay[]): Promise<Situation[]> {
  const endpoints = await lockEndpoints(tx, replays);
  const found: Situation[] = [];
  for (const [i, endpoint] of endpoints.entries()) {
    const replayable = endpoint.found
      ? await findReplayable(tx, replays[i] as Replay)
      : { orderIds: [], next: undefined };
    found.push({ ...endpoint, ...replayable, operationId: uuidv7() });
  }
  return found;
}

function decide(
  { id, caller, dryRun }: Replay,
  { found, orderIds, next, operationId }: Situation,
): Decision<Replayed> {
  if (!found) return { answer: notFound, effects: [] };
  const changes = !dryRun && orderIds.length > 0;
  const body = {
    operation_id: changes ? operationId : null,
    found: orderIds.length,
    replayed: changes ? orderIds.length : 0,
    complete: next === undefined,
    next_cursor: next && writeCursor(next),
  };
  const operation = {
    id: operationId,
    who: caller || "the caller",
    reason: `replay of the endpoint ${id}`,
  };
  const parks = found.state !== "ACTIVE" || found.is_draining;
  return {
    answer: { status: 200, body: JSON.stringify(body), outcome: "applied" },
    effects: changes ? [{ kind: "replayed", endpointId: id, orderIds, parks, operation }] : [],
  };
}
