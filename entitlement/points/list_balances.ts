import { z } from "@hono/zod-openapi";
import { errorAnswer, fieldSchema } from "@kenri/shared/http/fields.ts";
import type { ScopedRoute } from "@kenri/shared/http/openapi.ts";
import { pathPart } from "@kenri/shared/http/route.ts";
import { valid } from "@kenri/shared/operators/operations.ts";
import { type Database, query, utc } from "@kenri/shared/postgres/postgres.ts";
import { nothing, sql } from "@kenri/shared/postgres/sql.ts";
import type { Handler } from "hono";
import { unitSchema } from "./fields.ts";

const requestSchema = z.object({
  user_id: fieldSchema().openapi({
    description: "The user whose balances are listed",
    example: "ann",
  }),
  unit: unitSchema().optional().openapi({ description: "Only the balance in this unit" }),
});

export const balancesSchema = z.object({
  user_id: z.string(),
  balances: z.array(z.object({
    unit: z.string(),
    balance: z.int().min(0),
    version: z.int().min(1).openapi({ description: "Number of transactions so far" }),
    updated_at: z.iso.datetime().openapi({ description: "Time of the last one, in UTC" }),
  })),
}).openapi("Balances");

const example = {
  user_id: "ann",
  balances: [{
    unit: "points",
    balance: 100,
    version: 1,
    updated_at: "2026-01-02T03:04:05.678901Z",
  }],
};

export const balancesRoute: ScopedRoute = {
  method: "get",
  path: "/v1/users/{user_id}/points",
  scope: "points:read",
  operationId: "listBalances",
  tags: ["Points"],
  summary: "All balances of a user",
  description: "One for each unit in which the user ever had points, in the order of their names.",
  request: {
    params: requestSchema.pick({ user_id: true }),
    query: requestSchema.pick({ unit: true }),
  },
  responses: {
    200: {
      description: "The balances; the list is empty for an unknown user",
      content: { "application/json": { schema: balancesSchema, example } },
    },
    400: errorAnswer("The user_id or unit is invalid", {
      BAD_REQUEST: "user_id must have at most 255 characters",
    }),
  },
};

export function listBalances(database: Database): Handler {
  return async ({ req }) => {
    const { user_id, unit } = valid(
      requestSchema.safeParse({ ...req.query(), user_id: pathPart(req, "user_id") }),
    );
    return Response.json({ user_id, balances: await findBalances(database, user_id, unit) });
  };
}

export function findBalances(
  database: Database,
  userId: string,
  unit?: string,
): Promise<z.output<typeof balancesSchema>["balances"]> {
  return query(
    database,
    sql`
    select unit, balance, version,
      ${utc(sql`updated_at`)} as updated_at
    from point_root
    where user_id = ${userId}${
      unit === undefined ? nothing : sql`
      and unit = ${unit}`
    }
    order by unit`,
  );
}
