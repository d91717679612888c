import { z } from "@hono/zod-openapi";
import { type Decision, refusal } from "@kenri/shared/commands/answer.ts";
import type { CommandRoute } from "@kenri/shared/commands/route.ts";
import { fieldSchema } from "@kenri/shared/http/fields.ts";
import { errorAnswer } from "@kenri/shared/http/fields.ts";
import { pathPart } from "@kenri/shared/http/route.ts";
import { actingHeader, notOwner } from "./acting.ts";
import {
  changed,
  type Effect,
  madeBy,
  next,
  type Request,
  type Situation,
  unchanged,
} from "./change.ts";
import { type ErrorCode, statusOfCode, userNotFound } from "./errors.ts";
import { countAs } from "./metrics.ts";
import { answerOf, etagOf, notFound, type User, userExample, userSchema } from "./user.ts";

// PATCH of an account: a field that is absent stays as it is, and one that is null is cleared.

export const profileSchema = z.object({
  display_name: fieldSchema().nullable().optional(),
  locale: fieldSchema().nullable().optional(),
}).openapi("ProfileChange");

type Fields = z.output<typeof profileSchema>;

export interface ChangeProfile extends Request {
  kind: "profile";
  fields: Fields;
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
  headers: {
    ...actingHeader,
    "If-Match": z.string().optional().openapi({
      description: "The `ETag` of the version that is to be changed",
      example: '"1"',
    }),
  },
  body: { schema: profileSchema, example: { display_name: "Ann", locale: "en-GB" } },
  toInput: (fields, sender, req, context) => ({
    kind: "profile",
    userId: pathPart(req, "user_id"),
    fields,
    ifMatch: req.raw.headers.get("If-Match"),
    ...madeBy(context, sender),
  }),
  count: countAs("profile"),
};

export function decideProfile(request: ChangeProfile, situation: Situation): Decision<Effect> {
  const { user } = situation;
  const { fields, ifMatch } = request;
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

const preconditionFailed = refusal(
  statusOfCode,
  "state_conflict",
  "PRECONDITION_FAILED",
  versionIsOld,
);
