import { type OpenAPIHono, z } from "@hono/zod-openapi";
import {
  type SendAnswer,
  type SendFailure,
  sendReasons,
  type SendRequest,
} from "@kenri/proto/send.ts";
import type { Authenticator } from "@kenri/shared/access/authenticator.ts";
import { createApp } from "@kenri/shared/http/app.ts";
import { readJson } from "@kenri/shared/http/body.ts";
import { ApiError } from "@kenri/shared/http/errors.ts";
import { problemsOf } from "@kenri/shared/http/fields.ts";
import type { ScopedRoute } from "@kenri/shared/http/openapi.ts";
import { addRoute } from "@kenri/shared/http/route.ts";
import type { Log } from "@kenri/shared/process/log.ts";
import { counter, countersBy } from "@kenri/shared/telemetry/metrics.ts";

export interface AppParts {
  send(request: SendRequest): Promise<SendAnswer | SendFailure>;
  authenticator: Authenticator;
  log: Log;
}

export function senderApp({ send, authenticator, log }: AppParts): OpenAPIHono {
  const app = createApp({ title: "Kenri sender", checks: {}, authenticator, log });
  addRoute(app, sendRoute, async ({ req }) => {
    const outcome = await send(await readRequest(req.raw));
    count(outcome);
    return Response.json(outcome);
  });
  return app;
}

// A payload has at most 16 KiB, and as part of a text each of its quotes takes two bytes.
const maxBytes = 64 * 1024;

async function readRequest(request: Request): Promise<SendRequest> {
  const { success, data, error } = requestSchema.safeParse(await readJson(request, maxBytes));
  if (success) return data;
  throw new ApiError("BAD_REQUEST", problemsOf(error));
}

// These decide how the connection is used, which is not the caller's business.
const refusedHeaders =
  /^(connection|content-length|expect|host|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade)$/i;

const requestSchema = z.object({
  method: z.literal("POST"),
  url: z.string(),
  headers: z.record(
    z.string().regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/).refine((name) => !refusedHeaders.test(name)),
    z.string().regex(/^[\x20-\x7e]*$/, "must be visible ASCII characters"),
  ),
  body: z.string(),
  timeout_ms: z.int().min(1).max(600_000),
});

const answerSchema = z.union([
  z.object({ status: z.int(), headers: z.record(z.string(), z.string()), body: z.string() }),
  z.object({ reason_code: z.enum(sendReasons), message: z.string() }),
]);

const sendRoute: ScopedRoute = {
  method: "post",
  path: "/send",
  scope: "send",
  summary: "Make one request to the outside",
  description:
    "Answers with what the receiver answered, of its body the first 4 KiB, or with the reason why " +
    "there is no answer. Redirects are not followed.",
  request: { body: { required: true, content: { "application/json": { schema: requestSchema } } } },
  responses: {
    200: {
      description: "The answer of the receiver, or the reason why there is none",
      content: { "application/json": { schema: answerSchema } },
    },
  },
};

const sends = counter<"result">(
  "kenri_sender_sends_total",
  "requests to the outside, by the class of the receiver's status or the reason why there is none",
  ["result"],
);
const results = ["1xx", "2xx", "3xx", "4xx", "5xx", ...sendReasons] as const;
const sendsBy = countersBy(results, (result) => sends.labels(result));

function count(outcome: SendAnswer | SendFailure): void {
  const result = "status" in outcome
    ? `${Math.floor(outcome.status / 100)}xx` as typeof results[number]
    : outcome.reason_code;
  sendsBy[result]?.inc();
}
