import { z } from "@hono/zod-openapi";
import { readJson } from "@kenri/shared/http/body.ts";
import { canonicalJson, depthOf } from "@kenri/shared/http/canonical_json.ts";
import { ApiError } from "@kenri/shared/http/errors.ts";
import { errorAnswer, fieldSchema, problemsOf } from "@kenri/shared/http/fields.ts";
import { refusalsBy } from "@kenri/shared/http/limits.ts";
import type { ScopedRoute } from "@kenri/shared/http/openapi.ts";
import { pathPart } from "@kenri/shared/http/route.ts";
import { type Trace, traceOf } from "@kenri/shared/http/trace.ts";
import { sha256 } from "@kenri/shared/process/sha256.ts";
import type { MakeChange } from "@kenri/shared/redis/confirmed.ts";
import type { Reply } from "@kenri/shared/redis/redis_link.ts";
import { activeTraceparent } from "@kenri/shared/telemetry/tracing.ts";
import type { Handler } from "hono";
import { actingHeader, userOf } from "./acting.ts";
import { answering, unavailableAnswer } from "./answering.ts";
import { apiError, badRequest, type ErrorCode } from "./errors.ts";
import { commonKeys, idempotencyKeyOf, joinsOf, keysOf, queueOf, waitingOf } from "./keys.ts";
import type { Rings } from "./match_tickets.ts";
import { scripts } from "./scripts/scripts.ts";
import { type Found, foundIn, joinedExample, joinedSchema, newTicketId } from "./ticket.ts";

export interface TicketRules {
  ticketTtlMs: number;
  resultTtlMs: number;
  idempotencyTtlMs: number;
  perUser: number;
  bucket: string | undefined;
}

export interface JoinParts {
  change: MakeChange;
  rings: Rings;
  modes: readonly string[];
  rules: TicketRules;
}

const maxAttributesBytes = 4_096; // they are kept in memory, in the worst case for each ticket
const maxAttributesDepth = 8;
const maxBucketLength = 64;

// Each ticket stays in the memory of Redis for minutes, so those of one user have a limit. It is far
// above what a person does.
const maxJoins = 2_000;
const joinsRefused = refusalsBy("joins_per_user");

const notAnObject = { error: "must be an object" };
const bodySchema = z.object({
  party_size: z.literal(1, { error: "must be 1" }),
  attributes: z.record(z.string(), z.unknown(), notAnObject).optional(),
  idempotency_key: fieldSchema(),
}).openapi("Join");

export const joinRoute: ScopedRoute = {
  method: "post",
  path: "/v1/matchmaking/queues/{mode}/tickets",
  scope: "matchmaking:act-as",
  tags: ["Tickets"],
  summary: "Wait for a match",
  description:
    "A repeated request with the same `idempotency_key` gets the same ticket, as it stands now.",
  request: {
    params: z.object({ mode: z.string() }),
    headers: z.object(actingHeader),
    body: {
      required: true,
      content: {
        "application/json": {
          schema: bodySchema,
          example: { party_size: 1, attributes: { region: "eu" }, idempotency_key: "evening-1" },
        },
      },
    },
  },
  responses: {
    200: {
      description: "The ticket",
      content: { "application/json": { schema: joinedSchema, example: joinedExample } },
    },
    400: errorAnswer<ErrorCode>("The mode, a header or a field is invalid", {
      MATCHMAKING_BAD_REQUEST: "unsupported mode: x",
    }),
    409: errorAnswer<ErrorCode>("The user waits already, or the key was used otherwise", {
      MATCHMAKING_ALREADY_QUEUED: "the user waits in this mode already",
      IDEMPOTENCY_KEY_CONFLICT: "idempotency_key was used with other attributes",
    }),
    429: errorAnswer("The user has joined too often", {
      TOO_MANY_REQUESTS: "the user has joined this mode too often",
    }),
    503: unavailableAnswer,
  },
};

export function join(parts: JoinParts): Handler {
  const { modes, rules, rings } = parts;
  return answering(async ({ req }) => {
    const given = pathPart(req, "mode");
    const mode = given.toLowerCase();
    if (!modes.includes(mode)) throw badRequest(`unsupported mode: ${given.slice(0, 64)}`);
    const userId = userOf(req);
    const { attributes = {}, idempotency_key: key } = readBody(await readJson(req.raw));
    const bucket = bucketOf(attributes, rules.bucket);
    const trace = traceOf(req.raw.headers, activeTraceparent());
    const wish = { mode, userId, key, attributes: textOf(attributes), bucket };
    const { ticket, announced, isNew } = await makeTicket(parts, wish, trace);
    if (isNew) rings.ring(mode, bucket);
    if (announced) rings.announced();
    const { ticket_id, status, expires_at } = ticket;
    return Response.json({ ticket_id, status, expires_at });
  });
}

function readBody(value: unknown): z.output<typeof bodySchema> {
  const { success, data, error } = bodySchema.safeParse(value);
  if (!success) throw badRequest(problemsOf(error));
  return data;
}

// The same for the same attributes, whatever their order.
function textOf(attributes: Record<string, unknown>): string {
  if (depthOf(attributes) > maxAttributesDepth) {
    throw badRequest(`attributes must not be nested more than ${maxAttributesDepth} levels deep`);
  }
  const text = canonicalJson(attributes);
  if (new TextEncoder().encode(text).length > maxAttributesBytes) {
    throw badRequest(`attributes must have at most ${maxAttributesBytes} bytes`);
  }
  return text;
}

// Tickets without the attribute are a bucket of their own.
function bucketOf(attributes: Record<string, unknown>, name: string | undefined): string {
  const value = name !== undefined && Object.hasOwn(attributes, name) ? attributes[name] : "";
  if (typeof value === "string" && value.isWellFormed() && value.length <= maxBucketLength) {
    return value;
  }
  throw badRequest(`attributes.${name} must be text of at most ${maxBucketLength} characters`);
}

export interface Wish {
  mode: string;
  userId: string;
  key: string;
  attributes: string;
  bucket: string;
}

export async function makeTicket(
  { change, rules }: Pick<JoinParts, "change" | "rules">,
  { mode, userId, key, attributes, bucket }: Wish,
  { traceId, traceparent }: Trace,
): Promise<Found & { isNew: boolean }> {
  const { ticketTtlMs, resultTtlMs, idempotencyTtlMs, perUser } = rules;
  const reply = await change({
    script: scripts.join,
    keys: [
      ...commonKeys(mode),
      queueOf(mode, bucket),
      idempotencyKeyOf(mode, userId, key),
      waitingOf(mode, userId),
      joinsOf(mode, userId),
      keysOf(mode).buckets,
    ],
    args: [
      ...[newTicketId(mode), userId, mode, key, attributes, sha256(attributes)],
      ...[traceId, traceparent ?? "", bucket],
      ...[ticketTtlMs, resultTtlMs, idempotencyTtlMs, perUser, maxJoins].map(String),
    ],
  });
  const [how, retryInMs] = reply as [string, number];
  refuse(how, retryInMs);
  return { ...foundIn(reply), isNew: how === "made" };
}

function refuse(how: string, retryInMs: Reply): void {
  switch (how) {
    case "conflict":
      throw new ApiError(
        "IDEMPOTENCY_KEY_CONFLICT",
        "idempotency_key was used with other attributes",
      );
    case "queued":
      throw apiError("MATCHMAKING_ALREADY_QUEUED", "the user waits in this mode already");
    case "too many": {
      joinsRefused.inc();
      const seconds = Math.max(1, Math.ceil(Number(retryInMs) / 1_000));
      throw new ApiError("TOO_MANY_REQUESTS", "the user has joined this mode too often", {
        "Retry-After": `${seconds}`,
      });
    }
  }
}
