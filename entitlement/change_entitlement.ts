import { z } from "@hono/zod-openapi";
import { anybody } from "@kenri/shared/access/caller.ts";
import type { Batch } from "@kenri/shared/queue/batch.ts";
import type { ScopedRoute } from "@kenri/shared/http/openapi.ts";
import { ApiError } from "@kenri/shared/http/errors.ts";
import type { Context, Handler } from "hono";
import type { Answer } from "./decide_change.ts";
import { type Action, type Change, statusAfter } from "./entitlement.ts";
import type { ErrorCode } from "./errors.ts";
import { errorAnswer, fieldSchema, problemsOf } from "@kenri/shared/http/fields.ts";
import { tooManyWaiting } from "@kenri/shared/http/limits.ts";
import { readJson } from "@kenri/shared/http/body.ts";
import { statusOf } from "@kenri/shared/http/error_answers.ts";
import { activeTraceparent } from "@kenri/shared/telemetry/tracing.ts";
import { countCommand } from "./metrics.ts";
import { sha256 } from "@kenri/shared/process/sha256.ts";
import { type Trace, traceOf } from "@kenri/shared/http/trace.ts";

export const changeSchema = z.object({
  user_id: fieldSchema().openapi({ description: "The user whose entitlement is changed" }),
  stock_keeping_unit: fieldSchema().openapi({ description: "The item" }),
  reason: fieldSchema().openapi({
    description: "Reason of the change: purchase, refund and so on",
  }),
  purchase_id: fieldSchema().openapi({ description: "Id of the purchase that caused the change" }),
}).openapi("EntitlementChange");

export const changedSchema = z.object({
  user_id: z.string(),
  stock_keeping_unit: z.string(),
  status: z.enum(["ACTIVE", "REVOKED"]),
  version: z.int().min(1).openapi({
    description: "Number of changes so far; the first change is version 1",
  }),
  updated_at: z.iso.datetime().openapi({ description: "Time of the last change, in UTC" }),
}).openapi("ChangedEntitlement");

const requestHeaders = z.object({
  "Idempotency-Key": z.string().regex(/^[\x21-\x7e]{1,255}$/).openapi({
    description: "Makes the request safe to repeat for 24 hours; the purchase id is a good key",
    example: "purchase-1",
  }),
  traceparent: z.string().optional().openapi({
    description: "W3C trace context; the change and its event get its trace id",
    example: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
  }),
  "X-Trace-Id": z.string().optional().openapi({
    description:
      "Trace id of the change, 1 to 255 visible ASCII characters; overrides that of traceparent",
  }),
});

const answerHeaders = z.object({
  "X-Trace-Id": z.string().openapi({ description: "Trace id of the change" }),
  "Idempotency-Replayed": z.literal("true").optional().openapi({
    description: "Present if this is the stored answer to an earlier request with the same key",
  }),
});

const routes = {
  GRANT: { path: "/v1/entitlements/grants", verb: "Grant", reason: "purchase", version: 1 },
  REVOKE: { path: "/v1/entitlements/revokes", verb: "Revoke", reason: "refund", version: 2 },
};

export function changeRoute(action: Action): ScopedRoute {
  const { path, verb, reason, version } = routes[action];
  const status = statusAfter[action];
  const named = { user_id: "ann", stock_keeping_unit: "book" };
  const change = { ...named, reason, purchase_id: "purchase-1" };
  const changed = { ...named, status, version, updated_at: "2026-01-02T03:04:05.678901Z" };
  const conflict = errorAnswer<ErrorCode>(
    "The entitlement already has this status, or the user has as many entitlements as allowed (both " +
      "answers are stored under the key), or the key was used for another request",
    {
      ENTITLEMENT_STATE_CONFLICT: `already ${status}`,
      ENTITLEMENT_LIMIT_REACHED: "the user has as many entitlements as allowed",
      IDEMPOTENCY_KEY_CONFLICT: "the Idempotency-Key was used for another request",
    },
  );
  return {
    method: "post",
    path,
    scope: "entitlements:write",
    operationId: `${verb.toLowerCase()}Entitlement`,
    tags: ["Entitlements"],
    summary: `${verb} a user's right to one stock keeping unit`,
    description: "The change, its event and this answer are committed together. The same request " +
      "with the same key returns the same answer, byte for byte.",
    request: {
      headers: requestHeaders,
      body: {
        required: true,
        content: { "application/json": { schema: changeSchema, example: change } },
      },
    },
    responses: {
      200: {
        description: `The entitlement after the change, ${status}`,
        headers: answerHeaders,
        content: { "application/json": { schema: changedSchema, example: changed } },
      },
      400: errorAnswer("A header, the body or a field is missing or invalid", {
        BAD_REQUEST: "user_id is required",
      }),
      408: errorAnswer("The body took too long to arrive", {
        REQUEST_TIMEOUT: "request body took over 10 seconds",
      }),
      409: { ...conflict, headers: answerHeaders },
      413: errorAnswer("The body is too large", {
        PAYLOAD_TOO_LARGE: "request body is over 16 KiB",
      }),
      415: errorAnswer("The body is not JSON", {
        UNSUPPORTED_MEDIA_TYPE: "Content-Type must be application/json",
      }),
    },
  };
}

export function changeEntitlement(action: Action, changes: Batch<Change, Answer>): Handler {
  return (context) => {
    // Before the request is read, because under too much load a refusal must be cheap.
    if (changes.full) {
      countCommand(action, "unavailable");
      throw tooManyWaiting();
    }
    return change(context, action, changes);
  };
}

async function change(
  context: Context,
  action: Action,
  changes: Batch<Change, Answer>,
): Promise<Response> {
  const { headers } = context.req.raw;
  const trace = traceOf(headers, activeTraceparent());
  try {
    const answer = await changes.add(await readChange(action, context, trace));
    countCommand(action, answer.outcome);
    return new Response(answer.body, {
      status: answer.status,
      headers: {
        "Content-Type": "application/json",
        "X-Trace-Id": trace.traceId,
        ...(answer.outcome === "replayed" ? { "Idempotency-Replayed": "true" } : {}),
      },
    });
  } catch (error) {
    const status = statusOf(error);
    countCommand(action, status < 500 ? "invalid" : status === 503 ? "unavailable" : "error");
    context.set("about", {
      trace_id: trace.traceId,
      idempotency_key_sha256: sha256(headers.get("Idempotency-Key") ?? ""),
    });
    throw error;
  }
}

async function readChange(action: Action, context: Context, trace: Trace): Promise<Change> {
  const request = context.req.raw;
  const idempotencyKey = readKey(request.headers.get("Idempotency-Key"));
  const body = changeSchema.safeParse(await readJson(request));
  if (!body.success) throw new ApiError("BAD_REQUEST", problemsOf(body.error));
  return {
    action,
    userId: body.data.user_id,
    stockKeepingUnit: body.data.stock_keeping_unit,
    reason: body.data.reason,
    purchaseId: body.data.purchase_id,
    caller: (context.get("caller") ?? anybody).name,
    idempotencyKey,
    ...trace,
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
