import { z } from "@hono/zod-openapi";
import {
  lastPosition,
  pageFields,
  pageOf,
  type Position,
  positionSchema,
  readCursor,
} from "@kenri/shared/http/cursor.ts";
import type { ScopedRoute } from "@kenri/shared/http/openapi.ts";
import { errorAnswer, fieldSchema } from "@kenri/shared/http/fields.ts";
import { pathPart } from "@kenri/shared/http/route.ts";
import { valid } from "@kenri/shared/operators/operations.ts";
import { type Database, query, utc } from "@kenri/shared/postgres/postgres.ts";
import type { Handler } from "hono";

const requestSchema = z.object({
  user_id: fieldSchema().openapi({
    description: "The user whose notifications to list",
    example: "ann",
  }),
  ...pageFields(),
});

const answerSchema = z.object({
  user_id: z.string(),
  notifications: z.array(z.object({
    notification_id: z.uuid(),
    event_id: z.uuid(),
    type: z.string(),
    status: z.enum(["PENDING", "PROCESSING", "SENT", "FAILED"]),
    attempt_count: z.int(),
    created_at: z.iso.datetime(),
    sent_at: z.iso.datetime().nullable(),
    payload: z.record(z.string(), z.unknown()),
  })),
  next_cursor: z.string().optional(),
}).openapi("Inbox");

export type Inbox = z.infer<typeof answerSchema>;

export const notificationsRoute: ScopedRoute = {
  method: "get",
  path: "/v1/users/{user_id}/notifications",
  scope: "notifications:read",
  operationId: "listNotifications",
  tags: ["Notifications"],
  summary: "The notifications of a user",
  description: "The newest first. New notifications don't shift the pages.",
  request: {
    params: requestSchema.pick({ user_id: true }),
    query: requestSchema.pick({ limit: true, cursor: true }),
  },
  responses: {
    200: {
      description: "Empty for an unknown user; next_cursor is present if there are more",
      content: { "application/json": { schema: answerSchema } },
    },
    400: errorAnswer("The user_id, limit or cursor is invalid", {
      BAD_REQUEST: "limit must be at most 200",
    }),
  },
};

const { operationId: _, tags: __, ...same } = notificationsRoute;

// The same for operators.
export const inboxRoute: ScopedRoute = { ...same, path: "/debug/notification/inbox/{user_id}" };

export function listNotifications(database: Database): Handler {
  return async ({ req }) => {
    const { user_id, limit, cursor } = valid(
      requestSchema.safeParse({ ...req.query(), user_id: pathPart(req, "user_id") }),
    );
    const after = readCursor(cursor, positionSchema) ?? lastPosition;
    const found = await findNotifications(database, user_id, after, limit + 1);
    const { rows, next_cursor } = pageOf(
      found,
      limit,
      ({ created_at, notification_id }) => [created_at, notification_id],
    );
    return Response.json({ user_id, notifications: rows, next_cursor });
  };
}

interface InboxRow extends Record<string, unknown> {
  created_at: string;
  notification_id: string;
  event_id: string;
  type: string;
  status: string;
  attempt_count: number;
  sent_at: string | null;
  payload: Record<string, unknown>;
}

// Rows are in the order of the index, the newest first. The cursor is the last row of the page
// before.
function findNotifications(
  database: Database,
  userId: string,
  [before, id]: Position,
  limit: number,
): Promise<InboxRow[]> {
  return query<InboxRow>(
    database,
    `select notification_id, event_id, type, status, attempt_count,
       ${utc("created_at")} as created_at, ${utc("sent_at")} as sent_at,
       payload_json as payload
     from notifications
     where user_id = $1
       and (notifications.created_at, notification_id) < ($2::timestamptz, $3::uuid)
     order by notifications.created_at desc, notification_id desc
     limit $4`,
    [userId, before, id, limit],
  );
}
