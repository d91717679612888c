import { z } from "@hono/zod-openapi";
import type { CommandRoute } from "@kenri/shared/commands/route.ts";
import { fieldSchema } from "@kenri/shared/http/fields.ts";
import { type Action, type Change, statusAfter } from "./entitlement.ts";
import type { ErrorCode } from "./errors.ts";
import { countCommand } from "./metrics.ts";

// Grants and revokes over HTTP.

export const changeSchema = z.object({
  user_id: fieldSchema().openapi({ description: "The user whose entitlement is changed" }),
  stock_keeping_unit: fieldSchema().openapi({ description: "The item" }),
  reason: fieldSchema().openapi({
    description: "Reason of the change: purchase, refund and so on",
  }),
  purchase_id: fieldSchema().openapi({ description: "Id of the purchase that caused the change" }),
}).openapi("EntitlementChange");

type Fields = z.infer<typeof changeSchema>;

export const changedSchema = z.object({
  user_id: z.string(),
  stock_keeping_unit: z.string(),
  status: z.enum(["ACTIVE", "REVOKED"]),
  version: z.int().min(1).openapi({
    description: "Number of changes so far; the first change is version 1",
  }),
  updated_at: z.iso.datetime().openapi({ description: "Time of the last change, in UTC" }),
}).openapi("ChangedEntitlement");

const routes = {
  GRANT: { path: "/v1/entitlements/grants", verb: "Grant", reason: "purchase", version: 1 },
  REVOKE: { path: "/v1/entitlements/revokes", verb: "Revoke", reason: "refund", version: 2 },
};

export function changeRoute(action: Action): CommandRoute<Fields, Change> {
  const { path, verb, reason, version } = routes[action];
  const status = statusAfter[action];
  const named = { user_id: "ann", stock_keeping_unit: "book" };
  const example = { ...named, status, version, updated_at: "2026-01-02T03:04:05.678901Z" };
  return {
    route: {
      method: "post",
      path,
      scope: "entitlements:write",
      operationId: `${verb.toLowerCase()}Entitlement`,
      tags: ["Entitlements"],
      summary: `${verb} a user's right to one stock keeping unit`,
      description:
        "The change, its event and this answer are committed together. The same request " +
        "with the same key returns the same answer, byte for byte.",
      responses: {
        200: {
          description: `The entitlement after the change, ${status}`,
          content: { "application/json": { schema: changedSchema, example } },
        },
      },
    },
    key: { advice: "the purchase id is a good key", example: "purchase-1" },
    body: { schema: changeSchema, example: { ...named, reason, purchase_id: "purchase-1" } },
    refusals: {
      description:
        "The entitlement already has this status, or the user has as many entitlements " +
        "as allowed (both answers are stored under the key)",
      messages: {
        ENTITLEMENT_STATE_CONFLICT: `already ${status}`,
        ENTITLEMENT_LIMIT_REACHED: "the user has as many entitlements as allowed",
      } satisfies Partial<Record<ErrorCode, string>>,
    },
    toInput: (fields, sender) => ({
      action,
      userId: fields.user_id,
      stockKeepingUnit: fields.stock_keeping_unit,
      reason: fields.reason,
      purchaseId: fields.purchase_id,
      ...sender,
    }),
    count: (result) => countCommand(action, result),
  };
}
