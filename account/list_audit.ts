import { z } from "@hono/zod-openapi";
import {
  lastPosition,
  pageFields,
  pageOf,
  positionSchema,
  readCursor,
} from "@kenri/shared/http/cursor.ts";
import { ApiError } from "@kenri/shared/http/errors.ts";
import { errorAnswer } from "@kenri/shared/http/fields.ts";
import type { ScopedRoute } from "@kenri/shared/http/openapi.ts";
import { pathPart } from "@kenri/shared/http/route.ts";
import { valid } from "@kenri/shared/operators/operations.ts";
import { type Database, query, utc } from "@kenri/shared/postgres/postgres.ts";
import { sql } from "@kenri/shared/postgres/sql.ts";
import { uuidPattern } from "@kenri/shared/process/uuid.ts";
import type { Handler } from "hono";
import { actingHeader, actorOf } from "./acting.ts";
import { userNotFound } from "./errors.ts";
import { requireAdmin } from "./get_user.ts";

const requestSchema = z.object(pageFields());

const entrySchema = z.object({
  audit_id: z.uuid().openapi({ description: "Also the event_id of the change" }),
  occurred_at: z.iso.datetime(),
  action: z.string(),
  actor: z.string().openapi({ description: "A user_id, or the name of a caller" }),
  reason: z.string().nullable(),
  version: z.int(),
  detail: z.record(z.string(), z.unknown()),
  trace_id: z.string(),
});

export const auditSchema = z.object({
  audit: z.array(entrySchema),
  next_cursor: z.string().optional(),
}).openapi("AccountAudit");

export type AccountAuditEntry = z.output<typeof entrySchema>;

export const auditRoute: ScopedRoute = {
  method: "get",
  path: "/v1/users/{user_id}/audit",
  scope: "accounts:admin",
  tags: ["Accounts"],
  summary: "What was changed in an account, by whom and why",
  description: "The newest first.",
  request: {
    params: z.object({ user_id: z.string() }),
    query: requestSchema,
    headers: z.object(actingHeader),
  },
  responses: {
    200: {
      description: "Empty for an unknown user; next_cursor is present if there are more",
      content: { "application/json": { schema: auditSchema } },
    },
    400: errorAnswer("The limit or cursor is invalid", {
      BAD_REQUEST: "limit must be at most 200",
    }),
    404: errorAnswer("The user_id is not a UUID", { NOT_FOUND: userNotFound }),
  },
};

export function listAudit(database: Database): Handler {
  return async (context) => {
    const { req } = context;
    const userId = pathPart(req, "user_id");
    if (!uuidPattern.test(userId)) throw new ApiError("NOT_FOUND", userNotFound);
    const { limit, cursor } = valid(requestSchema.safeParse(req.query()));
    await requireAdmin(database, actorOf(context));
    const [at, id] = readCursor(cursor, positionSchema) ?? lastPosition;
    const found = await query<AccountAuditEntry & Record<string, unknown>>(
      database,
      sql`
      select audit_id, ${utc(sql`occurred_at`)} as occurred_at, action, actor, reason, version,
        detail, trace_id
      from audit_logs
      where user_id = ${userId}
        and (audit_logs.occurred_at, audit_id) < (${at}::timestamptz, ${id}::uuid)
      order by audit_logs.occurred_at desc, audit_id desc
      limit ${limit + 1}`,
    );
    const { rows, next_cursor } = pageOf(
      found,
      limit,
      ({ occurred_at, audit_id }) => [occurred_at, audit_id],
    );
    return Response.json({ audit: rows, next_cursor });
  };
}
