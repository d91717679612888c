import { z } from "@hono/zod-openapi";
import type { Batch } from "@kenri/shared/queue/batch.ts";
import type { ScopedRoute } from "@kenri/shared/http/openapi.ts";
import { ApiError } from "@kenri/shared/http/errors.ts";
import { type Database, query, utcOf } from "@kenri/shared/postgres/postgres.ts";
import type { Handler } from "hono";
import { errorAnswer, fieldSchema, problemsOf } from "@kenri/shared/http/fields.ts";
import { pathPart } from "@kenri/shared/http/route.ts";
import { tooManyWaiting } from "@kenri/shared/http/limits.ts";

const pathSchema = z.object({
  user_id: fieldSchema().openapi({
    description: "The user whose entitlements are listed",
    example: "ann",
  }),
});

export const entitlementsSchema = z.object({
  user_id: z.string(),
  entitlements: z.array(z.object({
    stock_keeping_unit: z.string(),
    status: z.enum(["ACTIVE", "REVOKED"]),
    version: z.int().min(1).openapi({
      description: "Number of changes so far; the first change is version 1",
    }),
    updated_at: z.iso.datetime().openapi({ description: "Time of the last change, in UTC" }),
  })),
}).openapi("Entitlements");

const example = {
  user_id: "ann",
  entitlements: [{
    stock_keeping_unit: "book",
    status: "ACTIVE" as const,
    version: 1,
    updated_at: "2026-01-02T03:04:05.678901Z",
  }],
};

export const listRoute: ScopedRoute = {
  method: "get",
  path: "/v1/users/{user_id}/entitlements",
  scope: "entitlements:read",
  operationId: "listEntitlements",
  tags: ["Entitlements"],
  summary: "All entitlements of a user",
  description: "The most recently changed first. Revoked entitlements are included.",
  request: { params: pathSchema },
  responses: {
    200: {
      description: "The list; it is empty for an unknown user",
      content: { "application/json": { schema: entitlementsSchema, example } },
    },
    400: errorAnswer("The user_id is invalid", {
      BAD_REQUEST: "user_id must have at most 255 characters",
    }),
  },
};

export function listEntitlements(lists: Batch<string, string>): Handler {
  return async ({ req }) => {
    if (lists.full) throw tooManyWaiting();
    const path = pathSchema.safeParse({ user_id: pathPart(req, "user_id") });
    if (!path.success) throw new ApiError("BAD_REQUEST", problemsOf(path.error));
    const { user_id } = path.data;
    const entitlements = await lists.add(user_id);
    return new Response(`{"user_id":${JSON.stringify(user_id)},"entitlements":${entitlements}}`, {
      headers: { "Content-Type": "application/json" },
    });
  };
}

// Look-ups that arrived at the same time are one query. Each list is one text, with four lines for
// each entitlement: PostgreSQL would take five times as long as we do to write it as JSON. No value
// contains a line break, because a field has no control characters.
export async function findEntitlements(database: Database, userIds: string[]): Promise<string[]> {
  const rows = await query<{ lines: string }>(
    database,
    `select coalesce((
       select string_agg(
         stock_keeping_unit || E'\\n' || status || E'\\n' || version || E'\\n' || updated_at,
         E'\\n' order by updated_at desc, stock_keeping_unit)
       from entitlements
       where entitlements.user_id = wanted.user_id), '') as lines
     from unnest($1::text[]) with ordinality as wanted (user_id, position)
     order by position`,
    [userIds],
  );
  return rows.map(({ lines }) => toJson(lines));
}

function toJson(lines: string): string {
  const values = lines === "" ? [] : lines.split("\n");
  let list = "";
  for (let i = 0; i < values.length; i += 4) {
    const [sku, status, version, time = ""] = values.slice(i, i + 4);
    list +=
      `${i === 0 ? "" : ","}{"stock_keeping_unit":${JSON.stringify(sku)},"status":"${status}"` +
      `,"version":${version},"updated_at":"${utcOf(time)}"}`;
  }
  return `[${list}]`;
}
