import { z } from "@hono/zod-openapi";
import type { CommandRoute } from "@kenri/shared/commands/route.ts";
import { fieldSchema } from "@kenri/shared/http/fields.ts";
import { instantSchema } from "@kenri/shared/http/instant.ts";
import { type Database, query } from "@kenri/shared/postgres/postgres.ts";
import { sql } from "@kenri/shared/postgres/sql.ts";
import { actingHeader } from "./acting.ts";
import { madeBy } from "./change.ts";
import {
  type EndSession,
  type EndSessions,
  maxAheadMs,
  notFarAhead,
  readSessionId,
} from "./end_sessions.ts";
import { countAs } from "./metrics.ts";

// Ends sessions by the identity that began them, for an issuer that logs somebody out. It knows its
// subject and perhaps a session of its own, but not our users.

const bodySchema = z.object({
  provider: fieldSchema(),
  subject: fieldSchema(),
  session_id: fieldSchema().nullish().openapi({
    description: "The session that ends, a UUID. Without it, all sessions of the user end",
  }),
  expires_at: instantSchema(
    "When this session would have ended by itself. Without it, its end is kept for 400 days",
  ).nullish(),
}).openapi("IdentityLogout");

type Fields = z.output<typeof bodySchema>;

export function endOfIdentityRoute(
  database: Database,
): CommandRoute<Fields, EndSessions | EndSession> {
  return {
    route: {
      method: "post",
      path: "/v1/identities:end-sessions",
      scope: "accounts:write",
      tags: ["Sessions"],
      summary: "End the sessions of an identity",
      description: "No user is registered.",
      responses: {
        204: { description: "The sessions have ended, or nobody has this identity" },
      },
    },
    headers: actingHeader,
    body: {
      schema: bodySchema,
      example: { provider: "https://issuer.example", subject: "248289761001" },
    },
    toInput: async ({ provider, subject, session_id, expires_at }, sender, _, context) => {
      const request = { maybeUnknown: true, ...madeBy(context, sender) };
      const session = session_id
        ? {
          session_id: readSessionId(session_id),
          expires_at: notFarAhead(expires_at ?? new Date(Date.now() + maxAheadMs).toISOString()),
        }
        : undefined;
      const userId = await findUserOf(database, provider, subject) ?? "";
      return session
        ? { kind: "end_session", userId, session, ...request }
        : { kind: "end_sessions", userId, ...request };
    },
    count: countAs("end_sessions"),
  };
}

async function findUserOf(
  database: Database,
  provider: string,
  subject: string,
): Promise<string | undefined> {
  const [found] = await query<{ user_id: string }>(
    database,
    sql`
    select user_id
    from identities
    where provider = ${provider}
      and subject = ${subject}`,
  );
  return found?.user_id;
}
