import type { Answer, Ask } from "@kenri/shared/http/ask_service.ts";
import { ApiError } from "@kenri/shared/http/errors.ts";
import { z } from "zod";
import { type DependencyClient, unreadable } from "./dependencies.ts";
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

export type Resolved = z.output<typeof resolvedSchema>;

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
  const stateOf = async ({ sessionId, issuerSession, userId }: Session) => {
    const query = new URLSearchParams({ user_id: userId });
    if (issuerSession !== undefined) query.set("issuer_session", issuerSession);
    const path = `/v1/sessions/${sessionId}?${query}`;
    const answer = await account.ask({ method: "GET", path });
    const { account_status: status, session_epoch: epoch, roles, ended } = account.read(
      answer,
      stateSchema,
    );
    return { version: versionIn(answer), status, roles, epoch, ended };
  };
  return {
    resolve: (identity) => account.json(post("/v1/identities:resolve", identity), resolvedSchema),
    stateOf: (session) =>
      stateOf(session).catch((error) => {
        if (error instanceof ApiError && error.status === 404) return undefined;
        throw error;
      }),
    async *ended() {
      let cursor: string | undefined;
      do {
        const query = new URLSearchParams({ limit: "200", ...(cursor ? { cursor } : {}) });
        const path = `/v1/sessions/ended?${query}`;
        const page = await account.json({ method: "GET", path }, endedSchema);
        yield* page.sessions;
        cursor = page.next_cursor;
      } while (cursor !== undefined);
    },
    async endSession({ sessionId, userId, expiresAtMs }) {
      const body = { user_id: userId, expires_at: timeOf(expiresAtMs) };
      await account.ask(postFor(userId, `/v1/sessions/${sessionId}:end`, body));
    },
    async endSessions(userId) {
      await account.ask(postFor(userId, `/v1/users/${userId}/sessions:end`));
    },
    async endSessionsOf({ provider, subject }, one) {
      const ofOne = one ? { session_id: one.sessionId, expires_at: timeOf(one.expiresAtMs) } : {};
      await account.ask(post("/v1/identities:end-sessions", { provider, subject, ...ofOne }));
    },
  };
}

const timeOf = (ms: number) => new Date(ms).toISOString();

// Each of them may be repeated: the second time changes nothing that matters.
function post(path: string, body?: object): Ask {
  const repeatable = { method: "POST" as const, path, isRepeatable: true };
  return body ? { ...repeatable, body: JSON.stringify(body) } : repeatable;
}

// The audit of the account says that its user did it.
function postFor(userId: string, path: string, body?: object): Ask {
  return { ...post(path, body), headers: { "X-User-Id": userId } };
}

// By the version it is known which of two states of an account is the newer one. A proxy that packs an
// answer makes its tag a weak one.
function versionIn({ headers }: Answer): number {
  const [, version] = /^(?:W\/)?"(\d+)"$/.exec(headers.get("ETag") ?? "") ?? [];
  if (version === undefined) throw unreadable("ACCOUNT");
  return Number(version);
}
