import type { Answer, Decision } from "@kenri/shared/commands/answer.ts";
import type { Trace } from "@kenri/shared/http/trace.ts";
import type { Context } from "hono";
import { actorOf } from "./acting.ts";
import type { User } from "./user.ts";

// A change of an account, or the end of sessions of its user: what its decision depends on, and what
// it writes.

export interface Request extends Trace {
  userId: string; // of the account, as it was written in the path
  actor: string; // the user or the caller who changes it
  forUser?: boolean; // the actor is a user, and may do only what this user may
  reason?: string;
}

export function madeBy(
  context: Context,
  { traceId, traceparent }: Trace,
): Omit<Request, "userId"> {
  const { name, isUser } = actorOf(context);
  return { actor: name, forUser: isUser, traceId, traceparent };
}

export interface Situation {
  user: User | undefined; // undefined if there is none, or if it was erased
  isLastAdmin: boolean; // no other active account has the role
  actorIsAdmin: boolean; // by the table of roles; false for callers that are no users
  hasEnded: boolean; // the session that the request names
  at: string; // the time for the change, later than that of the event before
  eventId: string;
}

export type Action =
  | "UPDATE"
  | "SUSPEND"
  | "RESUME"
  | "CHANGE_ROLES"
  | "END_SESSIONS"
  | "END_SESSION"
  | "ERASE";

export const eventTypeOf: Record<Action, string> = {
  UPDATE: "UserUpdated",
  SUSPEND: "UserSuspended",
  RESUME: "UserResumed",
  CHANGE_ROLES: "RolesChanged",
  END_SESSIONS: "SessionsEnded",
  END_SESSION: "SessionEnded",
  ERASE: "SessionsEnded", // with the status DELETED
};

export interface EndedSession {
  session_id: string;
  expires_at: string;
}

// Written as one: the account, its audit row and its event.
export interface Change {
  request: Request;
  action: Action;
  user: User; // after the change
  at: string;
  eventId: string;
  reason: string | null;
  detail: Record<string, unknown>; // small; for the audit
  session: EndedSession | null;
}

// Each change has the first three effects.
export type Effect =
  | Change & { kind: "event" }
  | Change & { kind: "user" }
  | Change & { kind: "audit" }
  | Change & { kind: "roles" }
  | Change & { kind: "session" };

interface Changed {
  action: Action;
  user: User;
  detail?: Record<string, unknown>;
  session?: EndedSession;
}

export function changed(
  request: Request,
  { at, eventId }: Situation,
  { action, user, detail = {}, session }: Changed,
  answer: Answer,
): Decision<Effect> {
  const change: Change = {
    ...{ request, action, user, at, eventId, detail },
    reason: request.reason ?? null,
    session: session ?? null,
  };
  return {
    answer,
    effects: [
      { kind: "event", ...change },
      { kind: "user", ...change },
      { kind: "audit", ...change },
      ...(action === "CHANGE_ROLES" ? [{ kind: "roles" as const, ...change }] : []),
      ...(session ? [{ kind: "session" as const, ...change }] : []),
    ],
  };
}

// The account as it is after a change of the account itself.
export function next(user: User, { at }: Situation, fields: Partial<User>): User {
  return { ...user, ...fields, version: user.version + 1, updated_at: at };
}

export const unchanged = (answer: Answer): Decision<Effect> => ({ answer, effects: [] });

export const noContent: Answer = { status: 204, body: "", outcome: "applied" };
