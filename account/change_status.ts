import { z } from "@hono/zod-openapi";
import type { Decision } from "@kenri/shared/commands/answer.ts";
import type { CommandRoute } from "@kenri/shared/commands/route.ts";
import { errorAnswer, fieldSchema } from "@kenri/shared/http/fields.ts";
import { pathPart } from "@kenri/shared/http/route.ts";
import { actingHeader } from "./acting.ts";
import {
  changed,
  type Effect,
  madeBy,
  next,
  noContent,
  type Request,
  type Situation,
  unchanged,
} from "./change.ts";
import { userNotFound } from "./errors.ts";
import { lastAdmin, lastAdminRefusal } from "./last_admin.ts";
import { countAs } from "./metrics.ts";
import { notFound } from "./user.ts";

// Suspends and resumes an account. A suspended user keeps the sessions, which work again after the
// account is resumed.

const bodySchema = z.object({ reason: fieldSchema() }).openapi("StatusChange");

export interface ChangeStatus extends Request {
  kind: "status";
  action: "SUSPEND" | "RESUME";
  reason: string;
}

export const suspendRoute = statusRoute("SUSPEND", "Suspend an account");
export const resumeRoute = statusRoute("RESUME", "Resume a suspended account");

function statusRoute(
  action: ChangeStatus["action"],
  summary: string,
): CommandRoute<{ reason: string }, ChangeStatus> {
  return {
    route: {
      method: "post",
      path: `/v1/users/{user_id}:${action.toLowerCase()}`,
      scope: "accounts:admin",
      tags: ["Accounts"],
      summary,
      description: "A repeated request changes nothing.",
      request: { params: z.object({ user_id: z.string() }) },
      responses: {
        204: { description: "The account is in this state" },
        404: errorAnswer("There is no such user", { NOT_FOUND: userNotFound }),
      },
    },
    headers: actingHeader,
    body: { schema: bodySchema, example: { reason: "spam" } },
    ...(action === "SUSPEND" ? { refusals: lastAdminRefusal } : {}),
    toInput: ({ reason }, sender, req, context) => ({
      kind: "status",
      action,
      userId: pathPart(req, "user_id"),
      reason,
      ...madeBy(context, sender),
    }),
    count: countAs(action === "SUSPEND" ? "suspend" : "resume"),
  };
}

export function decideStatus(request: ChangeStatus, situation: Situation): Decision<Effect> {
  const { user } = situation;
  const { action } = request;
  if (!user) return unchanged(notFound);
  const status = action === "SUSPEND" ? "SUSPENDED" : "ACTIVE";
  if (user.status === status) return unchanged(noContent);
  const losesAdmin = status === "SUSPENDED" && user.roles.includes("ADMIN");
  if (losesAdmin && situation.isLastAdmin) return unchanged(lastAdmin);
  const after = next(user, situation, { status });
  return changed(request, situation, { action, user: after }, noContent);
}
