import { z } from "@hono/zod-openapi";
import { type Decision, refusal } from "@kenri/shared/commands/answer.ts";
import type { CommandRoute } from "@kenri/shared/commands/route.ts";
import { fieldSchema } from "@kenri/shared/http/fields.ts";
import { errorAnswer } from "@kenri/shared/http/fields.ts";
import { pathPart } from "@kenri/shared/http/route.ts";
import { actingHeaders, type Actor, actorOf, notOwner } from "./acting.ts";
import { changed, type Effect, next, type Request, type Situation, unchanged } from "./change.ts";
import { type ErrorCode, statusOfCode, userNotFound } from "./errors.ts";
import { etagOf, notFound, shown, type User, userExample, userSchema } from "./user.ts";

// PATCH of an account: a field that is absent stays as it is, and one that is null is cleared.

const bodySchema = z.object({
  display_name: fieldSchema().nullable().optional(),
  locale: fieldSchema().nullable().optional(),
}).openapi("ProfileChange");

type Fields = z.output<typeof bodySchema>;

export interface ChangeProfile extends Request {
  kind: "profile";
  fields: Fields;
  by: Actor;
  ifMatch: string | null;
}

const versionIsOld = "the account was changed since this version";

export const profileRoute: CommandRoute<Fields, ChangeProfile> = {
  route: {
    method: "patch",
    path: "/v1/users/{user_id}",
    scope: "accounts:write",
    tags: ["Accounts"],
    summary: "Change the profile of a user",
    description: "With `X-User-Id`, only the user or an ADMIN may change it.",
    request: {
      params: z.object({ user_id: z.string() }),
      headers: z.object({
        ...actingHeaders,
        "If-Match": z.string().optional().openapi({
          description: "The `ETag` of the version to change; another version is answered with 412",
        }),
      }),
    },
    responses: {
      200: {
        description: "The account after the change; `ETag` is its version",
        content: { "application/json": { schema: userSchema, example: userExample } },
      },
      403: errorAnswer("`X-User-Id` is not the owner, or the scope is missing", {
        FORBIDDEN: notOwner,
      }),
      404: errorAnswer("There is no such user", { NOT_FOUND: userNotFound }),
      412: errorAnswer<ErrorCode>("`If-Match` names another version", {
        PRECONDITION_FAILED: versionIsOld,
      }),
    },
  },
  body: { schema: bodySchema, example: { display_name: "Ann", locale: "en-GB" } },
  toInput: (fields, sender, req, context) => {
    const by = actorOf(context);
    const { traceId, traceparent } = sender;
    return {
      kind: "profile",
      userId: pathPart(req, "user_id"),
      actor: by.name,
      by,
      fields,
      ifMatch: req.raw.headers.get("If-Match"),
      traceId,
      traceparent,
    };
  },
};

export function decideProfile(request: ChangeProfile, situation: Situation): Decision<Effect> {
  const { user } = situation;
  const { by, fields, ifMatch } = request;
  const isOwner = by.name === request.userId.toLowerCase();
  if (by.isUser && !isOwner && !situation.actorIsAdmin) return unchanged(forbidden);
  if (!user) return unchanged(notFound);
  if (ifMatch !== null && !matches(ifMatch, user)) return unchanged(preconditionFailed);
  const { display_name = user.display_name, locale = user.locale } = fields;
  if (display_name === user.display_name && locale === user.locale) {
    return unchanged(answerOf(user));
  }
  const after = next(user, situation, { display_name, locale });
  const detail = { fields: Object.keys(fields) };
  return changed(request, situation, { action: "UPDATE", user: after, detail }, answerOf(after));
}

// A weak tag never matches here (RFC 9110).
function matches(header: string, user: User): boolean {
  return header.split(",").some((tag) => tag.trim() === "*" || tag.trim() === etagOf(user));
}

const forbidden = refusal(statusOfCode, "state_conflict", "FORBIDDEN", notOwner);
const preconditionFailed = refusal(
  statusOfCode,
  "state_conflict",
  "PRECONDITION_FAILED",
  versionIsOld,
);

function answerOf(user: User) {
  const body = JSON.stringify(shown(user));
  return { status: 200, body, outcome: "applied" as const, headers: { "ETag": etagOf(user) } };
}
