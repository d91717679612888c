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
import { maxTimerMs } from "@kenri/shared/process/setting_kinds.ts";
import type { Log } from "@kenri/shared/process/log.ts";
import { counter, countersBy } from "@kenri/shared/telemetry/metrics.ts";

export interface AppParts {
  send(request: SendRequest): Promise<SendAnswer | SendFailure>;
  check(url: string): SendFailure | undefined;
  authenticator: Authenticator;
  log: Log;
}

export function senderApp({ send, check, authenticator, log }: AppParts): OpenAPIHono {
  const app = createApp({ title: "Kenri sender", checks: {}, authenticator, log });
  addRoute(app, sendRoute, async ({ req }) => {
    const outcome = await send(await readRequest(req.raw, requestSchema));
    count(outcome);
    return Response.json(outcome);
  });
  addRoute(app, checkRoute, async ({ req }) => {
    const { url } = await readRequest(req.raw, checkSchema);
    return Response.json(check(url) ?? {});
  });
  return app;
}

// A payload has at most 16 KiB when it is accepted. It may become longer: `1e20` is written with 21
// digits, and in a text each quote takes two bytes.
const maxBytes = 128 * 1024;

async function readRequest<Body>(request: Request, schema: z.ZodType<Body>): Promise<Body> {
  const { success, data, error } = schema.safeParse(await readJson(request, maxBytes));
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
  timeout_ms: z.int().min(1).max(maxTimerMs),
});

const checkSchema = z.object({ url: z.string() });

const failureSchema = z.object({ reason_code: z.enum(sendReasons), message: z.string() });
const answerSchema = z.union([
  z.object({ status: z.int(), headers: z.record(z.string(), z.string()), body: z.string() }),
  failureSchema,
]);

const sendRoute = routeOf("/send", requestSchema, answerSchema, {
  summary: "Make one request to the outside",
  description: "Redirects are not followed.",
  answers: "What the receiver answered, of its body the first 4 KiB, or why there is no answer",
});

const checkRoute = routeOf("/check", checkSchema, z.union([z.object({}), failureSchema]), {
  summary: "Judge a url without resolving its name",
  description: "The addresses of a name are judged with each request to it.",
  answers: "Why nothing is sent to this url, or an empty object",
});

function routeOf(
  path: string,
  asked: z.ZodType,
  answered: z.ZodType,
  { summary, description, answers }: Record<"summary" | "description" | "answers", string>,
): ScopedRoute {
  const json = (schema: z.ZodType) => ({ "application/json": { schema } });
  return {
    method: "post",
    path,
    scope: "send",
    summary,
    description,
    request: { body: { required: true, content: json(asked) } },
    responses: { 200: { description: answers, content: json(answered) } },
  };
}

const sends = counter<"result">(
  "sender_sends_total",
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
