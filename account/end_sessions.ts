import { z } from "@hono/zod-openapi";
import type { Decision } from "@kenri/shared/commands/answer.ts";
import type { CommandRoute } from "@kenri/shared/commands/route.ts";
import { ApiError } from "@kenri/shared/http/errors.ts";
import { errorAnswer, fieldSchema } from "@kenri/shared/http/fields.ts";
import { instantSchema } from "@kenri/shared/http/instant.ts";
import { pathPart } from "@kenri/shared/http/route.ts";
import { uuidPattern } from "@kenri/shared/process/uuid.ts";
import { actingHeader } from "./acting.ts";
import {
  changed,
  type Effect,
  type EndedSession,
  madeBy,
  noContent,
  type Request,
  type Situation,
  unchanged,
} from "./change.ts";
import { userNotFound } from "./errors.ts";
import { countAs } from "./metrics.ts";
import { notFound } from "./user.ts";

// Ends one session of a user, or all of them. The end of sessions is no change of the account, so its
// version stays: a logout must not make an `If-Match` fail.

interface Ending extends Request {
  maybeUnknown?: boolean; // then there is nothing to end, and that is no error
}

export interface EndSessions extends Ending {
  kind: "end_sessions";
}

export interface EndSession extends Ending {
  kind: "end_session";
  session: EndedSession;
}

export const endAllRoute: CommandRoute<undefined, EndSessions> = {
  route: {
    method: "post",
    path: "/v1/users/{user_id}/sessions:end",
    scope: "accounts:write",
    tags: ["Sessions"],
    summary: "End all sessions of a user",
    request: { params: z.object({ user_id: z.string() }) },
    responses: {
      204: { description: "All sessions that began until now have ended" },
      400: errorAnswer("The user_id is not percent-encoded UTF-8"),
      404: errorAnswer("There is no such user", { NOT_FOUND: userNotFound }),
    },
  },
  headers: actingHeader,
  toInput: (_, sender, req, context) => ({
    kind: "end_sessions",
    userId: pathPart(req, "user_id"),
    ...madeBy(context, sender),
  }),
  count: countAs("end_sessions"),
};

const bodySchema = z.object({
  user_id: fieldSchema(),
  expires_at: instantSchema("When the session would have ended by itself"),
}).openapi("SessionEnd");

// The row of an ended session is kept until an hour after it would have expired.
export const maxAheadMs = 400 * 86_400_000;

export const endOneRoute: CommandRoute<z.output<typeof bodySchema>, EndSession> = {
  route: {
    method: "post",
    path: "/v1/sessions/{session_id}:end",
    scope: "accounts:write",
    tags: ["Sessions"],
    summary: "End one session",
    description: "A repeated request changes nothing.",
    request: { params: z.object({ session_id: z.uuid() }) },
    responses: {
      204: { description: "The session has ended" },
      404: errorAnswer("There is no such user", { NOT_FOUND: userNotFound }),
    },
  },
  headers: actingHeader,
  body: {
    schema: bodySchema,
    example: {
      user_id: "0197f7a0-5f0c-7c3e-9b1d-2f4f3c1a9e57",
      expires_at: "2026-01-09T03:04:05Z",
    },
  },
  toInput: ({ user_id, expires_at }, sender, req, context) => ({
    kind: "end_session",
    userId: user_id,
    session: {
      session_id: readSessionId(pathPart(req, "session_id")),
      expires_at: notFarAhead(expires_at),
    },
    ...madeBy(context, sender),
  }),
  count: countAs("end_session"),
};

export function readSessionId(id: string): string {
  if (!uuidPattern.test(id)) throw new ApiError("BAD_REQUEST", "session_id must be a UUID");
  return id.toLowerCase();
}

export function notFarAhead(instant: string): string {
  if (Date.parse(instant) <= Date.now() + maxAheadMs) return instant;
  throw new ApiError("BAD_REQUEST", "expires_at must be within 400 days");
}

export function decideEndAll(request: EndSessions, situation: Situation): Decision<Effect> {
  const { user } = situation;
  if (!user) return unchanged(request.maybeUnknown ? noContent : notFound);
  const after = { ...user, session_epoch: user.session_epoch + 1 };
  return changed(request, situation, { action: "END_SESSIONS", user: after }, noContent);
}

export function decideEnd(request: EndSession, situation: Situation): Decision<Effect> {
  const { user, hasEnded } = situation;
  const { session } = request;
  if (!user) return unchanged(request.maybeUnknown ? noContent : notFound);
  if (hasEnded) return unchanged(noContent);
  const detail = { session_id: session.session_id };
  return changed(request, situation, { action: "END_SESSION", user, detail, session }, noContent);
}
