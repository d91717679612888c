import { z } from "@hono/zod-openapi";
import { readJson } from "@kenri/shared/http/body.ts";
import { ApiError } from "@kenri/shared/http/errors.ts";
import { fieldSchema } from "@kenri/shared/http/fields.ts";
import type { ScopedRoute } from "@kenri/shared/http/openapi.ts";
import { lookRoute } from "@kenri/shared/operators/look_route.ts";
import { valid } from "@kenri/shared/operators/operations.ts";
import { type Database, query, utc } from "@kenri/shared/postgres/postgres.ts";
import { type Sql, sql } from "@kenri/shared/postgres/sql.ts";
import { uuidPattern } from "@kenri/shared/process/uuid.ts";
import type { Handler } from "hono";
import { allRoles, rolesOf, statuses } from "../user.ts";

// Finds accounts by what a person who asks for help knows: the id, the email or the identity. An email
// is only searched for and never shown. Only who may change accounts may search for them.

const requestSchema = z.object({
  user_id: fieldSchema().optional(),
  email: fieldSchema().optional(),
  provider: fieldSchema().optional(),
  subject: fieldSchema().optional(),
});

export type AccountsQuery = z.input<typeof requestSchema>;

const identitySchema = z.object({
  provider: z.string(),
  subject: z.string(),
  has_email: z.boolean(),
  email_verified: z.boolean().nullable(),
  created_at: z.string(),
  last_login_at: z.string(),
});

const entrySchema = z.object({
  event_id: z.uuid(),
  occurred_at: z.string(),
  action: z.string(),
  actor: z.string(),
  reason: z.string().nullable(),
  detail: z.record(z.string(), z.unknown()),
});

const accountSchema = z.object({
  user_id: z.uuid(),
  display_name: z.string().nullable(),
  locale: z.string().nullable(),
  status: z.enum(statuses),
  roles: z.array(z.enum(allRoles)),
  version: z.int(),
  session_epoch: z.int(),
  created_at: z.string(),
  updated_at: z.string(),
  ended_sessions: z.int().openapi({ description: "Sessions that ended alone and did not expire" }),
  identities: z.array(identitySchema),
  audit: z.array(entrySchema),
}).openapi("AccountLook");

const answerSchema = z.object({ accounts: z.array(accountSchema) });

export type AccountLook = z.infer<typeof accountSchema>;
export type AccountLooks = z.infer<typeof answerSchema>;

const accountsAtMost = 20;
const entriesAtMost = 20;

export const findRoute: ScopedRoute = {
  ...lookRoute({
    path: "/debug/account/find",
    summary: "Find accounts",
    description:
      `At most ${accountsAtMost}, each with its identities and the last ${entriesAtMost} ` +
      "entries of its audit: by exactly one of user_id, email, or provider and subject. Nothing of " +
      "this is in the url, because urls are kept in logs.",
    body: requestSchema,
    answer: answerSchema,
    answers: "None is no error. An account that was erased is found by its user_id alone",
    invalid: "Not exactly one of them is given, or it is invalid",
  }),
  scope: "accounts:admin",
};

export function findAccounts(database: Database): Handler {
  return async ({ req }) => {
    const asked = valid(requestSchema.safeParse(await readJson(req.raw)));
    return Response.json({ accounts: await find(database, wanted(asked)) });
  };
}

// The condition on `users`; undefined if nothing can meet it.
function wanted({ user_id, email, provider, subject }: AccountsQuery): Sql | undefined {
  const isIdentity = provider !== undefined && subject !== undefined;
  const isHalf = !isIdentity && (provider !== undefined || subject !== undefined);
  const given = [user_id !== undefined, email !== undefined, isIdentity].filter(Boolean).length;
  if (given !== 1 || isHalf) {
    const names = "user_id, email, provider and subject";
    throw new ApiError("BAD_REQUEST", `exactly one of ${names} is required`);
  }
  if (user_id !== undefined) {
    return uuidPattern.test(user_id) ? sql`user_id = ${user_id}` : undefined;
  }
  const ofIdentity = isIdentity
    ? sql`provider = ${provider} and subject = ${subject}`
    : sql`lower(email) = lower(${email})`;
  return sql`user_id in (select user_id from identities where ${ofIdentity})`;
}

async function find(database: Database, condition: Sql | undefined): Promise<AccountLook[]> {
  if (condition === undefined) return [];
  return await query<AccountLook & Record<string, unknown>>(
    database,
    sql`
    select user_id, display_name, locale, status, version, session_epoch,
      ${rolesOf(sql`users.user_id`)} as roles,
      ${utc(sql`created_at`)} as created_at,
      ${utc(sql`updated_at`)} as updated_at,
      (select count(*)
       from ended_sessions
       where ended_sessions.user_id = users.user_id
         and expires_at > now()) as ended_sessions,
      (select coalesce(jsonb_agg(jsonb_build_object(
           'provider', provider, 'subject', subject, 'has_email', email is not null,
           'email_verified', email_verified,
           'created_at', ${utc(sql`identities.created_at`)},
           'last_login_at', ${utc(sql`last_login_at`)}) order by last_login_at desc), '[]')
       from identities
       where identities.user_id = users.user_id) as identities,
      (select coalesce(jsonb_agg(jsonb_build_object(
           'event_id', audit_id, 'occurred_at', ${utc(sql`occurred_at`)}, 'action', action,
           'actor', actor, 'reason', reason, 'detail', detail)
           order by occurred_at desc, audit_id desc), '[]')
       from (
         select *
         from audit_logs
         where audit_logs.user_id = users.user_id
         order by occurred_at desc, audit_id desc
         limit ${entriesAtMost}
       ) as entry) as audit
    from users
    where ${condition}
    order by users.created_at desc, user_id
    limit ${accountsAtMost}`,
  );
}
