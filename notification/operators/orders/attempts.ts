import { z } from "@hono/zod-openapi";
import { pageFields, pageOf, readCursor } from "@kenri/shared/http/cursor.ts";
import { ApiError } from "@kenri/shared/http/errors.ts";
import { lookRoute } from "@kenri/shared/operators/look_route.ts";
import { valid } from "@kenri/shared/operators/operations.ts";
import { type Database, query, utc } from "@kenri/shared/postgres/postgres.ts";
import type { Handler } from "hono";

// What was tried: each send of an order, or to an endpoint, with the headers of the request and the
// answer, and what operators did in between.

const attemptSchema = z.object({
  attempt_id: z.string(),
  order_id: z.uuid(),
  outcome: z.string(),
  reason_code: z.string().nullable(),
  error: z.string().nullable(),
  http_status: z.int().nullable(),
  begun_at: z.string().nullable(),
  ended_at: z.string(),
  worker: z.string().nullable(),
  request_headers: z.unknown(),
  response_headers: z.unknown(),
  response_body: z.string().nullable().openapi({ description: "The first 4 KiB" }),
  who: z.string().nullable().openapi({ description: "Of an operation" }),
  reason: z.string().nullable().openapi({ description: "Of an operation" }),
}).openapi("AttemptLook");

export type AttemptLook = z.infer<typeof attemptSchema>;

const answerSchema = z.object({
  attempts: z.array(attemptSchema),
  next_cursor: z.string().optional(),
});

export type AttemptLooks = z.infer<typeof answerSchema>;

const requestSchema = z.object({
  order_id: z.uuid("must be a UUID").optional(),
  endpoint_id: z.uuid("must be a UUID").optional(),
  ...pageFields(),
});

export type AttemptsQuery = z.input<typeof requestSchema>;

export const attemptsRoute = lookRoute({
  path: "/debug/notification/attempts",
  summary: "Attempts",
  description:
    "The sends of an order, or to an endpoint, with the request's headers and the answer",
  query: requestSchema,
  answer: answerSchema,
  answers: "The newest first",
  invalid: "Not exactly one of order_id, endpoint_id is given, or a field is invalid",
});

const lastAttempt = "9223372036854775807"; // the largest bigint

export function listAttempts(database: Database): Handler {
  return async ({ req }) => {
    const { order_id, endpoint_id, limit, cursor } = valid(requestSchema.safeParse(req.query()));
    if ((order_id === undefined) === (endpoint_id === undefined)) {
      throw new ApiError("BAD_REQUEST", "exactly one of order_id, endpoint_id is required");
    }
    const [before] = readCursor(cursor, z.tuple([z.string().regex(/^\d{1,18}$/)])) ??
      [lastAttempt];
    const found = await query<AttemptLook>(
      database,
      `select attempt_id::text, attempt.id as order_id, outcome, reason_code, error, http_status,
         ${utc("attempt.begun_at")} as begun_at, ${utc("attempt.ended_at")} as ended_at, worker,
         request_headers, response_headers, response_body, operation.who, operation.reason
       from order_attempts attempt
       left join operations operation on operation.operation_id = attempt.operation_id
       where ${order_id === undefined ? "attempt.endpoint_id" : "attempt.id"} = $1
         and attempt_id < $2
       order by attempt_id desc
       limit $3`,
      [order_id ?? endpoint_id, before, limit + 1],
    );
    const { rows, next_cursor } = pageOf(found, limit, ({ attempt_id }) => [attempt_id]);
    return Response.json({ attempts: rows, next_cursor });
  };
}
