import { z } from "@hono/zod-openapi";
import type { Handler } from "hono";
import { callerOf } from "@kenri/shared/access/caller.ts";
import { errorAnswer } from "@kenri/shared/http/fields.ts";
import { ApiError } from "@kenri/shared/http/errors.ts";
import type { ScopedRoute } from "@kenri/shared/http/openapi.ts";
import { pathPart } from "@kenri/shared/http/route.ts";
import { type Database, query, utc } from "@kenri/shared/postgres/postgres.ts";
import { type Sql, sql } from "@kenri/shared/postgres/sql.ts";
import { uuidPattern } from "@kenri/shared/process/uuid.ts";
import { withoutSender } from "../errors.ts";

// An endpoint as its caller sees it, and the route that shows one.

export const orderings = ["none", "key", "endpoint"] as const;
export const states = ["ACTIVE", "PAUSED", "FAILING", "DISABLED", "GONE"] as const;

export type State = typeof states[number];

// What a caller chooses.
export interface EndpointFields {
  url: string;
  event_types: string[] | null; // null for all
  user_id: string | null; // null for all
  ordering: typeof orderings[number];
  at_once: number;
  description: string | null;
}

export interface Endpoint extends EndpointFields {
  endpoint_id: string;
  state: State;
  state_since: string;
  is_draining: boolean;
  failures: number;
  failing_since: string | null;
  next_probe_at: string | null;
  last_success_at: string | null;
  last_failure_at: string | null;
  last_reason: string | null;
  created_at: string;
  updated_at: string;
}

// In the order in which they are answered.
export const endpointColumns: Sql = sql`endpoint_id, url, event_types, user_id, ordering, at_once,
      description, state, ${utc(sql`state_since`)} as state_since, is_draining, failures,
      ${utc(sql`failing_since`)} as failing_since, ${utc(sql`next_probe_at`)} as next_probe_at,
      ${utc(sql`last_success_at`)} as last_success_at,
      ${utc(sql`last_failure_at`)} as last_failure_at, last_reason,
      ${utc(sql`created_at`)} as created_at, ${utc(sql`updated_at`)} as updated_at`;

const time = () => z.iso.datetime();

export const endpointSchema = z.object({
  endpoint_id: z.uuid(),
  url: z.string(),
  event_types: z.array(z.string()).nullable().openapi({ description: "null for all" }),
  user_id: z.string().nullable().openapi({
    description: "The user whose events are sent; null for those of all users",
  }),
  ordering: z.enum(orderings),
  at_once: z.int(),
  description: z.string().nullable(),
  state: z.enum(states).openapi({
    description:
      "Webhooks are sent while it is ACTIVE, and parked in every other state. FAILING: it can't be " +
      "reached, and is probed; DISABLED: it was FAILING for too long; GONE: it answered with 410",
  }),
  state_since: time(),
  is_draining: z.boolean().openapi({
    description: "It is ACTIVE again, and what was parked is being sent",
  }),
  failures: z.int().openapi({ description: "In a row, of those that say it can't be reached" }),
  failing_since: time().nullable(),
  next_probe_at: time().nullable(),
  last_success_at: time().nullable(),
  last_failure_at: time().nullable(),
  last_reason: z.string().nullable().openapi({ description: "The reason of the last failure" }),
  created_at: time(),
  updated_at: time().openapi({ description: "When its caller last changed it" }),
}).openapi("Endpoint");

export function newEndpoint(endpoint_id: string, fields: EndpointFields, at: string): Endpoint {
  return {
    endpoint_id,
    ...fields,
    state: "ACTIVE",
    state_since: at,
    is_draining: false,
    failures: 0,
    failing_since: null,
    next_probe_at: null,
    last_success_at: null,
    last_failure_at: null,
    last_reason: null,
    created_at: at,
    updated_at: at,
  };
}

export const endpointExample: Endpoint = newEndpoint(
  "019b7c2e-5a7e-7c3a-9a51-7d2f0e6f1a02",
  {
    url: "https://shop.example/kenri",
    event_types: ["EntitlementGranted"],
    user_id: null,
    ordering: "key",
    at_once: 4,
    description: "the shop",
  },
  "2026-01-01T00:00:00.000000Z",
);

export const endpointPath = z.object({
  endpoint_id: z.string().openapi({ example: endpointExample.endpoint_id }),
});

export const noEndpoint = "no such endpoint";
export const tag = "Endpoints";

export const withoutEndpoint = {
  400: errorAnswer("The endpoint_id is invalid", {
    BAD_REQUEST: "endpoint_id must be percent-encoded UTF-8",
  }),
  404: errorAnswer("The caller has no such endpoint", { NOT_FOUND: noEndpoint }),
  503: withoutSender,
};

export const endpointRoute: ScopedRoute = {
  method: "get",
  path: "/v1/endpoints/{endpoint_id}",
  scope: "endpoints:read",
  operationId: "findEndpoint",
  tags: [tag],
  summary: "Look up an endpoint",
  description: "Callers see only their own endpoints. The secret is never shown again.",
  request: { params: endpointPath },
  responses: {
    200: {
      description: "The endpoint and its health",
      content: { "application/json": { schema: endpointSchema, example: endpointExample } },
    },
    ...withoutEndpoint,
  },
};

export function findEndpoint(database: Database): Handler {
  return async (context) => {
    const id = pathPart(context.req, "endpoint_id");
    return Response.json(await ownEndpoint(database, callerOf(context).name, id));
  };
}

// Of another caller it is not found, so that nobody learns that it exists.
export async function ownEndpoint(
  database: Database,
  caller: string,
  id: string,
): Promise<Endpoint> {
  const [found] = uuidPattern.test(id)
    ? await query<Endpoint & Record<string, unknown>>(
      database,
      sql`
      select ${endpointColumns}
      from endpoints
      where endpoint_id = ${id}
        and caller = ${caller}
        and state <> 'DELETED'`,
    )
    : [];
  if (!found) throw new ApiError("NOT_FOUND", noEndpoint);
  return found;
}
