import { z } from "@hono/zod-openapi";
import { callerOf } from "@kenri/shared/access/caller.ts";
import { pageFields, pageOf, readCursor } from "@kenri/shared/http/cursor.ts";
import { errorAnswer } from "@kenri/shared/http/fields.ts";
import type { ScopedRoute } from "@kenri/shared/http/openapi.ts";
import { pathPart } from "@kenri/shared/http/route.ts";
import { valid } from "@kenri/shared/operators/operations.ts";
import { type Database, query, utc } from "@kenri/shared/postgres/postgres.ts";
import { sql } from "@kenri/shared/postgres/sql.ts";
import type { Handler } from "hono";
import { endpointPath, ownEndpoint, tag, withoutEndpoint } from "./endpoint.ts";

// Each send to an endpoint, with what was sent and what came back.

const requestSchema = z.object(pageFields());

const attemptSchema = z.object({
  order_id: z.uuid(),
  event_id: z.uuid().nullable().openapi({ description: "null for an order that is no event" }),
  event_type: z.string().nullable(),
  outcome: z.string().openapi({ description: "SUCCEEDED, RETRIED, GAVE_UP, PUT_OFF or PROBED" }),
  reason_code: z.string().nullable().openapi({ description: "Why it failed" }),
  begun_at: z.iso.datetime().nullable(),
  ended_at: z.iso.datetime(),
  request_headers: z.record(z.string(), z.string()).nullable(),
  http_status: z.int().nullable(),
  response_headers: z.record(z.string(), z.string()).nullable(),
  response_body: z.string().nullable().openapi({ description: "The first 4 KiB" }),
});

type Attempt = z.infer<typeof attemptSchema>;

export const attemptsSchema = z.object({
  attempts: z.array(attemptSchema),
  next_cursor: z.string().optional(),
}).openapi("EndpointAttempts");

const example: Attempt = {
  order_id: "019b7c2e-5a7e-7c3a-9a51-7d2f0e6f1a03",
  event_id: "019b7c2e-5a7e-7c3a-9a51-7d2f0e6f1a04",
  event_type: "EntitlementGranted",
  outcome: "RETRIED",
  reason_code: "SERVER_ERROR",
  begun_at: "2026-01-01T00:00:00.000000Z",
  ended_at: "2026-01-01T00:00:00.120000Z",
  request_headers: { "webhook-id": "019b7c2e-5a7e-7c3a-9a51-7d2f0e6f1a04" },
  http_status: 500,
  response_headers: { "content-type": "text/plain" },
  response_body: "try again",
};

export const attemptsRoute: ScopedRoute = {
  method: "get",
  path: "/v1/endpoints/{endpoint_id}/attempts",
  scope: "endpoints:read",
  operationId: "listEndpointAttempts",
  tags: [tag],
  summary: "What was sent to an endpoint, and what it answered",
  description: "The newest first. Attempts are deleted with their orders.",
  request: { params: endpointPath, query: requestSchema },
  responses: {
    200: {
      description: "next_cursor is present if there are more",
      content: {
        "application/json": { schema: attemptsSchema, example: { attempts: [example] } },
      },
    },
    400: errorAnswer("The endpoint_id, limit or cursor is invalid", {
      BAD_REQUEST: "limit must be at most 200",
    }),
    404: withoutEndpoint[404],
    503: withoutEndpoint[503],
  },
};

const positionSchema = z.tuple([z.int().min(0)]);

export function listAttempts(database: Database): Handler {
  return async (context) => {
    const { req } = context;
    const { limit, cursor } = valid(requestSchema.safeParse(req.query()));
    const [before] = readCursor(cursor, positionSchema) ?? [Number.MAX_SAFE_INTEGER];
    const id = pathPart(req, "endpoint_id");
    await ownEndpoint(database, callerOf(context).name, id);
    const found = await query<Attempt & { attempt_id: number }>(
      database,
      sql`
      select attempt.attempt_id, attempt.id as order_id, event_id, event_type, attempt.outcome,
        attempt.reason_code, ${utc(sql`attempt.begun_at`)} as begun_at,
        ${utc(sql`attempt.ended_at`)} as ended_at, attempt.request_headers, attempt.http_status,
        attempt.response_headers, attempt.response_body
      from order_attempts attempt
      join outbox_orders on outbox_orders.id = attempt.id
      where attempt.endpoint_id = ${id}
        and attempt.attempt_id < ${before}
      order by attempt.attempt_id desc
      limit ${limit + 1}`,
    );
    const { rows, next_cursor } = pageOf(found, limit, ({ attempt_id }) => [attempt_id]);
    const attempts = rows.map(({ attempt_id: _, ...attempt }) => attempt);
    return Response.json({ attempts, next_cursor });
  };
}
