import { z } from "@hono/zod-openapi";
import {
  lastPosition,
  pageFields,
  pageOf,
  positionSchema,
  readCursor,
} from "@kenri/shared/http/cursor.ts";
import { textSchema } from "@kenri/shared/http/fields.ts";
import { lookRoute } from "@kenri/shared/operators/look_route.ts";
import { valid } from "@kenri/shared/operators/operations.ts";
import { type Database, query, utc } from "@kenri/shared/postgres/postgres.ts";
import { nothing, type Sql, sql } from "@kenri/shared/postgres/sql.ts";
import type { Handler } from "hono";
import { endpointStates } from "./parked.ts";

// The endpoints of all callers, each with its health.

const countedAtMost = 10_000;

const endpointSchema = z.object({
  endpoint_id: z.uuid(),
  caller: z.string(),
  origin: z.string().openapi({
    description: "Of its url; the rest may be a secret of the receiver",
  }),
  description: z.string().nullable(),
  event_types: z.array(z.string()).nullable(),
  user_id: z.string().nullable(),
  ordering: z.string(),
  at_once: z.int(),
  state: z.string(),
  state_since: z.string(),
  is_draining: z.boolean().openapi({
    description: "It is ACTIVE again, but some of its orders are still parked",
  }),
  failures: z.int().openapi({ description: "In a row, that say that it can't be reached" }),
  probes: z.int(),
  next_probe_at: z.string().nullable(),
  last_success_at: z.string().nullable(),
  last_failure_at: z.string().nullable(),
  last_reason: z.string().nullable(),
  parked: z.int().openapi({ description: `Parked orders, counted up to ${countedAtMost}` }),
  oldest_parked_at: z.string().nullable(),
  created_at: z.string(),
}).openapi("EndpointLook");

export type EndpointLook = z.infer<typeof endpointSchema>;

const answerSchema = z.object({
  endpoints: z.array(endpointSchema),
  next_cursor: z.string().optional(),
});

export type EndpointLooks = z.infer<typeof answerSchema>;

const requestSchema = z.object({
  endpoint_id: z.uuid("must be a UUID").optional(),
  state: z.enum(endpointStates, `must be one of ${endpointStates.join(", ")}`).optional(),
  caller: textSchema().optional(),
  ...pageFields(),
});

export type EndpointsQuery = z.input<typeof requestSchema>;

export const endpointsRoute = lookRoute({
  path: "/debug/notification/endpoints",
  summary: "Endpoints",
  description: "The endpoints of all callers with their health; filtered by id, state or caller",
  query: requestSchema,
  answer: answerSchema,
  answers: "The newest first; without those that were deleted",
  invalid: "The endpoint_id, state, caller, limit or cursor is invalid",
});

export function listEndpoints(database: Database): Handler {
  return async ({ req }) => {
    const { limit, cursor, ...wanted } = valid(requestSchema.safeParse(req.query()));
    const [before, id] = readCursor(cursor, positionSchema) ?? lastPosition;
    const found = await query<EndpointLook>(
      database,
      sql`with page as materialized (
         select *
         from endpoints
         where state <> 'DELETED'
           and (created_at, endpoint_id) < (${before}::timestamptz, ${id}::uuid)
           ${filterOf(wanted)}
         order by created_at desc, endpoint_id desc
         limit ${limit + 1}
       )
       select endpoint_id, caller, substring(url from '^[^:]+://[^/?#]+') as origin, description,
         event_types, user_id, ordering, at_once, state, ${utc(sql`state_since`)} as state_since,
         is_draining, failures, probes, ${utc(sql`next_probe_at`)} as next_probe_at,
         ${utc(sql`last_success_at`)} as last_success_at,
         ${utc(sql`last_failure_at`)} as last_failure_at, last_reason, parked.count as parked,
         ${utc(sql`parked.oldest`)} as oldest_parked_at,
         ${utc(sql`page.created_at`)} as created_at
       from page
       cross join lateral (
         select count(*), min(created_at) as oldest
         from (
           select created_at
           from outbox_orders
           where parked
             and endpoint_id = page.endpoint_id
           order by created_at, position
           limit ${countedAtMost}
         ) as counted
       ) as parked
       order by page.created_at desc, endpoint_id desc`,
    );
    const { rows, next_cursor } = pageOf(
      found,
      limit,
      ({ created_at, endpoint_id }) => [created_at, endpoint_id],
    );
    return Response.json({ endpoints: rows, next_cursor });
  };
}

function filterOf(
  { endpoint_id, state, caller }: Pick<
    z.output<typeof requestSchema>,
    "endpoint_id" | "state" | "caller"
  >,
): Sql {
  return sql`${endpoint_id === undefined ? nothing : sql`and endpoint_id = ${endpoint_id}::uuid`}
         ${state === undefined ? nothing : sql`and state = ${state}`}
         ${caller === undefined ? nothing : sql`and caller = ${caller}`}`;
}
