import { z } from "@hono/zod-openapi";
import { callerOf } from "@kenri/shared/access/caller.ts";
import {
  lastPosition,
  pageFields,
  pageOf,
  positionSchema,
  readCursor,
} from "@kenri/shared/http/cursor.ts";
import { errorAnswer } from "@kenri/shared/http/fields.ts";
import type { ScopedRoute } from "@kenri/shared/http/openapi.ts";
import { valid } from "@kenri/shared/operators/operations.ts";
import { type Database, query } from "@kenri/shared/postgres/postgres.ts";
import { sql } from "@kenri/shared/postgres/sql.ts";
import type { Handler } from "hono";
import { withoutSender } from "../errors.ts";
import {
  type Endpoint,
  endpointColumns,
  endpointExample,
  endpointSchema,
  tag,
} from "./endpoint.ts";

const requestSchema = z.object(pageFields());

export const endpointsSchema = z.object({
  endpoints: z.array(endpointSchema),
  next_cursor: z.string().optional(),
}).openapi("Endpoints");

export const endpointsRoute: ScopedRoute = {
  method: "get",
  path: "/v1/endpoints",
  scope: "endpoints:read",
  operationId: "listEndpoints",
  tags: [tag],
  summary: "All endpoints of the caller",
  description: "The newest first.",
  request: { query: requestSchema },
  responses: {
    200: {
      description: "next_cursor is present if there are more",
      content: {
        "application/json": {
          schema: endpointsSchema,
          example: { endpoints: [endpointExample] },
        },
      },
    },
    400: errorAnswer("The limit or cursor is invalid", {
      BAD_REQUEST: "limit must be at most 200",
    }),
    503: withoutSender,
  },
};

export function listEndpoints(database: Database): Handler {
  return async (context) => {
    const { limit, cursor } = valid(requestSchema.safeParse(context.req.query()));
    const [at, id] = readCursor(cursor, positionSchema) ?? lastPosition;
    const found = await query<Endpoint & Record<string, unknown>>(
      database,
      sql`
      select ${endpointColumns}
      from endpoints
      where caller = ${callerOf(context).name}
        and (endpoints.created_at, endpoint_id) < (${at}::timestamptz, ${id}::uuid)
        and state <> 'DELETED'
      order by endpoints.created_at desc, endpoint_id desc
      limit ${limit + 1}`,
    );
    const { rows, next_cursor } = pageOf(found, limit, (row) => [row.created_at, row.endpoint_id]);
    return Response.json({ endpoints: rows, next_cursor });
  };
}
