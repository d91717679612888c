import { z } from "@hono/zod-openapi";
import type { Decision } from "@kenri/shared/commands/answer.ts";
import type { CommandRoute } from "@kenri/shared/commands/route.ts";
import { errorAnswer } from "@kenri/shared/http/fields.ts";
import { pathPart } from "@kenri/shared/http/route.ts";
import { actingHeader } from "./acting.ts";
import {
  changed,
  type Effect,
  madeBy,
  next,
  type Request,
  type Situation,
  unchanged,
} from "./change.ts";
import { lastAdmin, lastAdminRefusal } from "./last_admin.ts";
import { apiError, userNotFound } from "./errors.ts";
import { countAs } from "./metrics.ts";
import { allRoles, answerOf, notFound, type Role, userExample, userSchema } from "./user.ts";

// Sets all roles of a user.

const bodySchema = z.object({
  roles: z.array(z.string().openapi({ enum: [...allRoles] }), { error: "must be a list of roles" })
    .max(
      20,
      "must have at most 20 roles",
    ),
}).openapi("Roles");

export interface ChangeRoles extends Request {
  kind: "roles";
  roles: Role[];
}

export const rolesRoute: CommandRoute<{ roles: string[] }, ChangeRoles> = {
  route: {
    method: "put",
    path: "/v1/users/{user_id}/roles",
    scope: "accounts:admin",
    tags: ["Accounts"],
    summary: "Set the roles of a user",
    request: { params: z.object({ user_id: z.string() }) },
    responses: {
      200: {
        description: "The account after the change",
        content: { "application/json": { schema: userSchema, example: userExample } },
      },
      404: errorAnswer("There is no such user", { NOT_FOUND: userNotFound }),
    },
  },
  headers: actingHeader,
  body: { schema: bodySchema, example: { roles: ["USER", "SUPPORT"] } },
  invalid: { ROLE_UNKNOWN: "roles must be of USER, SUPPORT, ADMIN" },
  refusals: lastAdminRefusal,
  toInput: ({ roles }, sender, req, context) => ({
    kind: "roles",
    userId: pathPart(req, "user_id"),
    roles: readRoles(roles),
    ...madeBy(context, sender),
  }),
  count: countAs("roles"),
};

function readRoles(named: string[]): Role[] {
  if (!named.every((name) => (allRoles as readonly string[]).includes(name))) {
    throw apiError("ROLE_UNKNOWN", `roles must be of ${allRoles.join(", ")}`);
  }
  return allRoles.filter((role) => named.includes(role));
}

export function decideRoles(request: ChangeRoles, situation: Situation): Decision<Effect> {
  const { user } = situation;
  const { roles } = request;
  if (!user) return unchanged(notFound);
  if (`${roles}` === `${user.roles}`) return unchanged(answerOf(user));
  const losesAdmin = user.roles.includes("ADMIN") && !roles.includes("ADMIN");
  if (losesAdmin && user.status === "ACTIVE" && situation.isLastAdmin) {
    return unchanged(lastAdmin);
  }
  const after = next(user, situation, { roles });
  const detail = { before: user.roles, after: roles };
  return changed(
    request,
    situation,
    { action: "CHANGE_ROLES", user: after, detail },
    answerOf(after),
  );
}
