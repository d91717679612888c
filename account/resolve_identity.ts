import { z } from "@hono/zod-openapi";
import { callerOf } from "@kenri/shared/access/caller.ts";
import { readJson } from "@kenri/shared/http/body.ts";
import { fieldSchema } from "@kenri/shared/http/fields.ts";
import { errorAnswer } from "@kenri/shared/http/fields.ts";
import type { ScopedRoute } from "@kenri/shared/http/openapi.ts";
import { type Trace, traceOf } from "@kenri/shared/http/trace.ts";
import { valid } from "@kenri/shared/operators/operations.ts";
import { insertsEvents } from "@kenri/shared/outbox/announce.ts";
import { type Database, query, utc } from "@kenri/shared/postgres/postgres.ts";
import { sql } from "@kenri/shared/postgres/sql.ts";
import type { Wakeup } from "@kenri/shared/process/signals.ts";
import { uuidv7 } from "@kenri/shared/process/uuid.ts";
import { activeTraceparent } from "@kenri/shared/telemetry/tracing.ts";
import type { Handler } from "hono";
import { countResolved } from "./metrics.ts";
import { outbox } from "./outbox.ts";
import { allRoles, etagOf, statuses, type User } from "./user.ts";

// Who logs in: the identity at a provider becomes the user that it belongs to. The first login
// registers the user.

const requestSchema = z.object({
  provider: fieldSchema().openapi({ description: "The issuer of the identity" }),
  subject: fieldSchema().openapi({ description: "The identity at this issuer (`sub`)" }),
  email: fieldSchema().nullish().openapi({
    description: "Without it, what is known of the email stays as it is",
  }),
  email_verified: z.boolean("must be true or false").nullish(),
  name: fieldSchema().nullish().openapi({ description: "Only the first login uses it" }),
  picture: z.url({ protocol: /^https?$/, error: "must be an http or https url" })
    .max(2048, "must have at most 2048 characters")
    .regex(/^[^\p{Cc}]*$/u, "must not have control characters")
    .nullish().openapi({ description: "Only the first login uses it" }),
}).openapi("Identity");

const answerSchema = z.object({
  user_id: z.uuid(),
  account_status: z.enum(statuses),
  roles: z.array(z.enum(allRoles)),
  session_epoch: z.int().openapi({ description: "Sessions of an earlier epoch have ended" }),
  is_new: z.boolean(),
}).openapi("ResolvedIdentity");

export const resolveRoute: ScopedRoute = {
  method: "post",
  path: "/v1/identities:resolve",
  scope: "accounts:resolve",
  tags: ["Identities"],
  summary: "Find or register the user of an identity",
  description: "Safe to repeat: an identity has one user, however many requests arrive at once.",
  request: {
    body: { required: true, content: { "application/json": { schema: requestSchema } } },
  },
  responses: {
    200: {
      description: "The user; `ETag` is the version of the account",
      content: { "application/json": { schema: answerSchema } },
    },
    400: errorAnswer("The body or a field is missing or invalid", {
      BAD_REQUEST: "provider is required",
    }),
    408: errorAnswer("The body took too long to arrive"),
    413: errorAnswer("The body is over 16 KiB"),
    415: errorAnswer("The body is not JSON"),
  },
};

export function resolveIdentity(database: Database, wakeRelay: Wakeup): Handler {
  return async (context) => {
    const { raw } = context.req;
    const identity = valid(requestSchema.safeParse(await readJson(raw)));
    const trace = traceOf(raw.headers, activeTraceparent());
    const { version, ...user } = await findOrRegister(
      database,
      identity,
      callerOf(context).name,
      trace,
    );
    if (user.is_new) wakeRelay.trigger();
    countResolved(user.is_new);
    return Response.json(user, {
      headers: { "ETag": etagOf({ version }), "X-Trace-Id": trace.traceId },
    });
  };
}

type Identity = z.output<typeof requestSchema>;
type Resolved =
  & z.output<typeof answerSchema>
  & Pick<User, "version">
  & Record<string, unknown>;

// One statement, so that the first logins of one identity at the same time lead to one user and none
// of them fails. The key of `identities` decides which of them registers the user. The others wait for
// its commit. What they waited for is newer than the snapshot of the statement, so they look at the
// account with a new one.
export async function findOrRegister(
  database: Database,
  { provider, subject, email, email_verified, name, picture }: Identity,
  actor: string,
  { traceId, traceparent }: Trace,
): Promise<Resolved> {
  const [userId, eventId] = [uuidv7(), uuidv7()];
  const knowsEmail = email !== undefined; // the issuer may not have been asked for it
  const event = sql`select ${eventId}::uuid as event_id, 'UserRegistered' as event_type,
      user_id::text as aggregate_key, ${traceparent}::text as traceparent, created_at,
      jsonb_build_object(
        'event_id', ${eventId}::text, 'event_type', 'UserRegistered',
        'occurred_at', ${utc(sql`created_at`)}, 'user_id', user_id, 'version', version,
        'session_epoch', session_epoch, 'session_id', null, 'actor', ${actor}::text,
        'trace_id', ${traceId}::text, 'account_status', status, 'roles', array['USER']) as payload
    from registered`;
  const [resolved] = await query<Resolved>(
    database,
    sql`
    with known as (
      insert into identities as known (provider, subject, user_id, email, email_verified)
      values (${provider}, ${subject}, ${userId}, ${email ?? null}, ${email_verified ?? null})
      on conflict (provider, subject) do update set
        email = case when ${knowsEmail} then excluded.email else known.email end,
        email_verified =
          case when ${knowsEmail} then excluded.email_verified else known.email_verified end,
        last_login_at = now()
      returning user_id, user_id = ${userId} as is_new
    ), registered as (
      insert into users (user_id, display_name, picture)
      select user_id, ${name ?? null}, ${picture ?? null}
      from known
      where is_new
      returning *
    ), role as (
      insert into account_roles (user_id, role)
      select user_id, 'USER'
      from registered
    ), audit as (
      insert into audit_logs
        (audit_id, occurred_at, user_id, action, actor, version, detail, trace_id)
      select ${eventId}, created_at, user_id, 'REGISTER', ${actor}, version,
        jsonb_build_object('provider', ${provider}::text), ${traceId}
      from registered
    ), announced as (${insertsEvents(outbox, event)})
    select known.user_id, state.status as account_status, state.roles, state.session_epoch,
      state.version, known.is_new
    from known
    cross join lateral (
      select status, version, session_epoch, array['USER'] as roles
      from registered
      union all
      select status, version, session_epoch, roles
      from newest_state(known.user_id)
      where not known.is_new
    ) as state`,
  );
  if (!resolved) throw new Error("The statement that resolves an identity returned no row");
  return resolved;
}
