import { type RouteConfig, z } from "@hono/zod-openapi";
import { Buffer } from "node:buffer";
import { ApiError } from "@kenri/shared/errors";
import { errorAnswer, fieldSchema, problemsOf } from "@kenri/shared/fields";
import { pathPart } from "@kenri/shared/http";
import { type Database, query } from "@kenri/shared/postgres";
import type { Handler } from "hono";

const defaultLimit = 50;
const maxLimit = 200;

const requestSchema = z.object({
  user_id: fieldSchema(),
  limit: z.coerce.number({ error: "must be a number" })
    .int("must be a whole number").min(1, "must be at least 1")
    .max(maxLimit, `must be at most ${maxLimit}`).default(defaultLimit),
  cursor: z.string().optional(),
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

export const inboxRoute: RouteConfig = {
  method: "get",
  path: "/debug/notification/inbox/{user_id}",
  description: "The notifications of a user, the newest first",
  request: {
    params: requestSchema.pick({ user_id: true }),
    query: requestSchema.pick({ limit: true, cursor: true }),
  },
  responses: {
    200: {
      description: "An unknown user has none; next_cursor is there when there are more",
      content: { "application/json": { schema: answerSchema } },
    },
    400: errorAnswer("The user_id, limit or cursor is bad"),
    503: errorAnswer("The database can't be reached"),
  },
};

export function inbox(database: Database): Handler {
  return async ({ req }) => {
    const asked = requestSchema.safeParse({
      ...req.query(),
      user_id: pathPart(req, "user_id"),
    });
    if (!asked.success) throw new ApiError("BAD_REQUEST", problemsOf(asked.error));
    const { user_id, limit, cursor } = asked.data;
    const after = cursor === undefined ? undefined : readCursor(cursor);
    // One more than asked for tells whether there is a next page.
    const found = await findNotifications(database, user_id, after, limit + 1);
    const notifications = found.slice(0, limit);
    const last = notifications.at(-1);
    const next_cursor = found.length > limit && last ? writeCursor(last) : undefined;
    return Response.json({ user_id, notifications, next_cursor });
  };
}

interface Position {
  created_at: string;
  notification_id: string;
}

// Also well-formed times may be none that PostgreSQL knows: it has no year 0.
const cursorSchema = z.tuple([z.iso.datetime({ precision: 6 }).regex(/^(?!0000)/), z.uuid()]);

function writeCursor({ created_at, notification_id }: Position): string {
  return Buffer.from(JSON.stringify([created_at, notification_id])).toString("base64url");
}

function readCursor(cursor: string): Position {
  try {
    const json = Buffer.from(cursor, "base64url").toString();
    const [created_at, notification_id] = cursorSchema.parse(JSON.parse(json));
    return { created_at, notification_id };
  } catch {
    throw new ApiError("BAD_REQUEST", "cursor is not one that this service gave out");
  }
}

interface InboxRow extends Position {
  event_id: string;
  type: string;
  status: string;
  attempt_count: number;
  sent_at: string | null;
  payload: Record<string, unknown>;
}

// A row's own order is the index's, newest first; the cursor is the row after which to go on.
function findNotifications(
  database: Database,
  userId: string,
  after: Position | undefined,
  limit: number,
): Promise<InboxRow[]> {
  return query<InboxRow & Record<string, unknown>>(
    database,
    `select notification_id, event_id, type, status, attempt_count,
       to_char(created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as created_at,
       to_char(sent_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as sent_at,
       payload_json as payload
     from notifications
     where user_id = $1
       and (notifications.created_at, notification_id) < ($2::timestamptz, $3::uuid)
     order by notifications.created_at desc, notification_id desc
     limit $4`,
    [
      userId,
      after?.created_at ?? "infinity",
      after?.notification_id ?? "ffffffff-ffff-ffff-ffff-ffffffffffff",
      limit,
    ],
  );
}
