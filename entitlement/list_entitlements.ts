import { type RouteConfig, z } from "@hono/zod-openapi";
import { ApiError } from "@kenri/shared/errors";
import { type Database, query } from "@kenri/shared/postgres";
import type { Handler } from "hono";
import type { Status } from "./entitlement.ts";
import { errorAnswer, fieldSchema, problemsOf } from "@kenri/shared/fields";
import { pathPart } from "@kenri/shared/http";

const pathSchema = z.object({ user_id: fieldSchema() });

const answerSchema = z.object({
  user_id: z.string(),
  entitlements: z.array(z.object({
    stock_keeping_unit: z.string(),
    status: z.enum(["ACTIVE", "REVOKED"]),
    version: z.int().min(1),
    updated_at: z.iso.datetime(),
  })),
}).openapi("Entitlements");

export const listRoute: RouteConfig = {
  method: "get",
  path: "/v1/users/{user_id}/entitlements",
  description: "All entitlements of a user, the newest change first, revoked ones included",
  request: { params: pathSchema },
  responses: {
    200: {
      description: "An unknown user has none",
      content: { "application/json": { schema: answerSchema } },
    },
    400: errorAnswer("The user_id is bad"),
    500: errorAnswer("An error in the service"),
    503: errorAnswer("The database can't be reached"),
  },
};

export function listEntitlements(database: Database): Handler {
  return async ({ req }) => {
    const path = pathSchema.safeParse({ user_id: pathPart(req, "user_id") });
    if (!path.success) throw new ApiError("BAD_REQUEST", problemsOf(path.error));
    const { user_id } = path.data;
    return Response.json({ user_id, entitlements: await findEntitlements(database, user_id) });
  };
}

interface Row {
  stock_keeping_unit: string;
  status: Status;
  version: number;
  updated_at: string;
}

function findEntitlements(database: Database, userId: string): Promise<Row[]> {
  return query<Row>(
    database,
    `select stock_keeping_unit, status, version,
       to_char(updated_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as updated_at
     from entitlements
     where user_id = $1
     order by entitlements.updated_at desc, stock_keeping_unit`,
    [userId],
  );
}
