import { z } from "zod";
import type { DependencyClient } from "./dependencies.ts";
import type { Session } from "./session/session.ts";

// What the gateway asks the account service in its own name.

const resolvedSchema = z.object({
  user_id: z.uuid(),
  account_status: z.string(),
  roles: z.array(z.string()),
  session_epoch: z.int(),
  is_new: z.boolean(),
});

const stateSchema = z.object({
  account_status: z.string(),
  roles: z.array(z.string()),
  session_epoch: z.int(),
  ended: z.boolean(),
});

const endedSchema = z.object({
  sessions: z.array(z.object({ session_id: z.uuid(), expires_at: z.string() })),
  next_cursor: z.string().optional(),
});

export interface Identity {
  provider: string;
  subject: string;
  email?: string | undefined;
  email_verified?: boolean | undefined;
  name?: string | undefined;
  picture?: string | undefined;
}

export type Resolved = z.output<typeof resolvedSchema> & { version: number };

export interface SessionState {
  version: number;
  status: string;
  roles: string[];
  epoch: number;
  ended: boolean;
}

export interface AccountClient {
  resolve(identity: Identity): Promise<Resolved>;
  stateOf(session: Session): Promise<SessionState | undefined>; // undefined if there is no such user
  ended(): AsyncIterable<{ session_id: string; expires_at: string }>;
  endSession(session: Session): Promise<void>;
  endSessions(userId: string): Promise<void>;
  // Those of an identity: one of them, or all.
  endSessionsOf(
    identity: Pick<Identity, "provider" | "subject">,
    one?: { sessionId: string; expiresAtMs: number },
  ): Promise<void>;
}

export function accountClient(account: DependencyClient): AccountClient {
  return {
    async resolve(identity) {
      const request = { method: "POST", path: "/v1/identities:resolve", body: identity };
      const { value, headers } = await account.json(
        { ...request, repeatable: true },
        resolvedSchema,
      );
      return { ...value, version: versionIn(headers) };
    },
    async stateOf({ sessionId, issuerSession, userId }) {
      const query = new URLSearchParams({ user_id: userId });
      if (issuerSession !== undefined) query.set("issuer_session", issuerSession);
      const path = `/v1/sessions/${sessionId}?${query}`;
      const found = await account.jsonIfFound({ method: "GET", path }, stateSchema);
      if (!found) return undefined;
      const { account_status: status, session_epoch: epoch, roles, ended } = found.value;
      return { version: versionIn(found.headers), status, roles, epoch, ended };
    },
    async *ended() {
      let cursor: string | undefined;
      do {
        const query = new URLSearchParams({ limit: "200", ...(cursor ? { cursor } : {}) });
        const { value } = await account.json(
          { method: "GET", path: `/v1/sessions/ended?${query}` },
          endedSchema,
        );
        yield* value.sessions;
        cursor = value.next_cursor;
      } while (cursor !== undefined);
    },
    endSession: ({ sessionId, userId, expiresAtMs }) =>
      account.done({
        method: "POST",
        path: `/v1/sessions/${sessionId}:end`,
        body: { user_id: userId, expires_at: new Date(expiresAtMs).toISOString() },
        repeatable: true,
      }),
    endSessions: (userId) =>
      account.done({ method: "POST", path: `/v1/users/${userId}/sessions:end`, repeatable: true }),
    endSessionsOf: (identity, one) =>
      account.done({
        method: "POST",
        path: "/v1/identities:end-sessions",
        body: {
          ...{ provider: identity.provider, subject: identity.subject },
          ...(one
            ? { session_id: one.sessionId, expires_at: new Date(one.expiresAtMs).toISOString() }
            : {}),
        },
        repeatable: true,
      }),
  };
}

// By the version it is known which of two states of an account is the newer one.
function versionIn(headers: Headers): number {
  return Number(/^"(\d+)"$/.exec(headers.get("ETag") ?? "")?.[1] ?? 0);
}
