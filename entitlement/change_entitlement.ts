import { type RouteConfig, z } from "@hono/zod-openapi";
import type { Batch } from "@kenri/shared/batch";
import { ApiError } from "@kenri/shared/errors";
import type { Handler } from "hono";
import type { Answer } from "./decide_change.ts";
import { type Action, type Change, statusAfter } from "./entitlement.ts";
import { errorAnswer, fieldSchema, problemsOf } from "@kenri/shared/fields";
import { readJson } from "@kenri/shared/request_body";
import { traceOf } from "./trace.ts";

const bodySchema = z.object({
  user_id: fieldSchema(),
  stock_keeping_unit: fieldSchema(),
  reason: fieldSchema(),
  purchase_id: fieldSchema(),
}).openapi("EntitlementChange");

const answerSchema = z.object({
  user_id: z.string(),
  stock_keeping_unit: z.string(),
  status: z.enum(["ACTIVE", "REVOKED"]),
  version: z.int().min(1),
  updated_at: z.iso.datetime(),
}).openapi("ChangedEntitlement");

const headersSchema = z.object({
  "idempotency-key": z.string().regex(/^[\x21-\x7e]{1,255}$/).openapi({
    description: "Makes the request safe to repeat; the purchase id is a good key",
  }),
  traceparent: z.string().optional(),
  "x-trace-id": z.string().optional(),
});

export function changeRoute(action: Action): RouteConfig {
  const { path, verb } = {
    GRANT: { path: "/v1/entitlements/grants", verb: "Grant" },
    REVOKE: { path: "/v1/entitlements/revokes", verb: "Revoke" },
  }[action];
  return {
    method: "post",
    path,
    description: `${verb} a user's right to one stock keeping unit`,
    request: {
      headers: headersSchema,
      body: { required: true, content: { "application/json": { schema: bodySchema } } },
    },
    responses: {
      200: {
        description: `The entitlement after the change, ${statusAfter[action]}`,
        headers: z.object({ "Idempotency-Replayed": z.string().optional() }),
        content: { "application/json": { schema: answerSchema } },
      },
      400: errorAnswer("A header, the body or a field is missing or bad"),
      408: errorAnswer("The body took too long to arrive"),
      409: errorAnswer("The key was used for another request, or the state is that already"),
      413: errorAnswer("The body is over 16 KiB"),
      415: errorAnswer("The body is not JSON"),
      500: errorAnswer("An error in the service"),
      503: errorAnswer("The database can't be reached, or too many wait; repeat with the same key"),
    },
  };
}

export function changeEntitlement(action: Action, changes: Batch<Change, Answer>): Handler {
  return async ({ req }) => {
    const idempotencyKey = readKey(req.raw.headers.get("Idempotency-Key"));
    const body = bodySchema.safeParse(await readJson(req.raw));
    if (!body.success) throw new ApiError("BAD_REQUEST", problemsOf(body.error));
    const trace = traceOf(req.raw.headers);
    const answer = await changes.add({
      action,
      userId: body.data.user_id,
      stockKeepingUnit: body.data.stock_keeping_unit,
      reason: body.data.reason,
      purchaseId: body.data.purchase_id,
      idempotencyKey,
      ...trace,
    });
    return new Response(answer.body, {
      status: answer.status,
      headers: {
        "Content-Type": "application/json",
        "X-Trace-Id": trace.traceId,
        ...(answer.replayed ? { "Idempotency-Replayed": "true" } : {}),
      },
    });
  };
}

function readKey(given: string | null): string {
  if (given === null || given.trim() === "") {
    throw new ApiError("BAD_REQUEST", "Idempotency-Key is required");
  }
  if (!/^[\x21-\x7e]{1,255}$/.test(given)) {
    throw new ApiError("BAD_REQUEST", "Idempotency-Key must be 1 to 255 visible ASCII characters");
  }
  return given;
}
