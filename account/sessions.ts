import { z } from "@hono/zod-openapi";
import {
  firstPosition,
  pageFields,
  positionSchema,
  readCursor,
  writeCursor,
} from "@kenri/shared/http/cursor.ts";
import { ApiError } from "@kenri/shared/http/errors.ts";
import { errorAnswer } from "@kenri/shared/http/fields.ts";
import { instantSchema } from "@kenri/shared/http/instant.ts";
import type { ScopedRoute } from "@kenri/shared/http/openapi.ts";
import { pathPart } from "@kenri/shared/http/route.ts";
import { valid } from "@kenri/shared/operators/operations.ts";
import { type Database, query, utc } from "@kenri/shared/postgres/postgres.ts";
import { sql } from "@kenri/shared/postgres/sql.ts";
import { uuidPattern } from "@kenri/shared/process/uuid.ts";
import type { Handler } from "hono";
import { readSessionId } from "./end_sessions.ts";
import { userNotFound } from "./errors.ts";
import { allRoles, etagOf, rolesOf, statuses, type User } from "./user.ts";

// What a gateway asks: which sessions have ended, and what stands against one session.

const listRequest = z.object({
  since: instantSchema("Only sessions that ended at this time or later").optional(),
  ...pageFields(),
});

const endedSchema = z.object({
  session_id: z.uuid(),
  user_id: z.uuid(),
  ended_at: z.iso.datetime(),
  expires_at: z.iso.datetime(),
});

const listSchema = z.object({
  sessions: z.array(endedSchema),
  next_cursor: z.string().optional(),
}).openapi("EndedSessions");

export const endedRoute: ScopedRoute = {
  method: "get",
  path: "/v1/sessions/ended",
  scope: "accounts:resolve",
  tags: ["Sessions"],
  summary: "Sessions that ended before they expired",
  description:
    "The earliest first. A session is in the list until an hour after it would have expired.",
  request: { query: listRequest },
  responses: {
    200: {
      description: "next_cursor is present if there are more",
      content: { "application/json": { schema: listSchema } },
    },
    400: errorAnswer("The time, limit or cursor is invalid", {
      BAD_REQUEST: "limit must be at most 200",
    }),
  },
};

type Ended = z.output<typeof endedSchema> & Record<string, unknown>;

export function listEnded(database: Database): Handler {
  return async ({ req }) => {
    const { since, limit, cursor } = valid(listRequest.safeParse(req.query()));
    const [at, id] = readCursor(cursor, positionSchema) ?? firstPosition;
    const found = await query<Ended>(
      database,
      sql`
      select session_id, user_id,
        ${utc(sql`ended_at`)} as ended_at,
        ${utc(sql`expires_at`)} as expires_at
      from ended_sessions
      where ended_at >= ${since ?? at}::timestamptz
        and (ended_sessions.ended_at, session_id) > (${at}::timestamptz, ${id}::uuid)
        and expires_at > now() - interval '1 hour'
      order by ended_sessions.ended_at, session_id
      limit ${limit + 1}`,
    );
    const sessions = found.slice(0, limit);
    const last = sessions.at(-1);
    const next_cursor = found.length > limit && last
      ? writeCursor([last.ended_at, last.session_id])
      : undefined;
    return Response.json({ sessions, next_cursor });
  };
}

const stateRequest = z.object({
  user_id: z.string({ error: "is required" }).regex(uuidPattern, "must be a UUID"),
  issuer_session: z.string().regex(uuidPattern, "must be a UUID").optional().openapi({
    description: "A second id under which this session may have ended",
  }),
});

const stateSchema = z.object({
  account_status: z.enum(statuses),
  roles: z.array(z.enum(allRoles)),
  session_epoch: z.int().openapi({ description: "Sessions of an earlier epoch have ended" }),
  ended: z.boolean().openapi({ description: "Whether this session has ended" }),
}).openapi("SessionState");

export const stateRoute: ScopedRoute = {
  method: "get",
  path: "/v1/sessions/{session_id}",
  scope: "accounts:resolve",
  tags: ["Sessions"],
  summary: "What stands against a session",
  request: {
    params: z.object({ session_id: z.uuid() }),
    query: stateRequest,
  },
  responses: {
    200: {
      description: "`ETag` is the version of the account",
      content: { "application/json": { schema: stateSchema } },
    },
    400: errorAnswer("The session_id or user_id is invalid", {
      BAD_REQUEST: "user_id is required",
    }),
    404: errorAnswer("There is no such user", { NOT_FOUND: userNotFound }),
  },
};

type State = z.output<typeof stateSchema> & Pick<User, "version"> & Record<string, unknown>;

export function sessionState(database: Database): Handler {
  return async ({ req }) => {
    const sessionId = readSessionId(pathPart(req, "session_id"));
    const { user_id, issuer_session = sessionId } = valid(stateRequest.safeParse(req.query()));
    const [found] = await query<State>(
      database,
      sql`
      select status as account_status, session_epoch, version,
        ${rolesOf(sql`users.user_id`)} as roles,
        exists (
          select
          from ended_sessions
          where session_id = any(${[sessionId, issuer_session]}::uuid[])
        ) as ended
      from users
      where user_id = ${user_id}`,
    );
    if (!found) throw new ApiError("NOT_FOUND", userNotFound);
    const { version, ...state } = found;
    return Response.json(state, { headers: { "ETag": etagOf({ version }) } });
  };
}
