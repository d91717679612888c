import { type RouteConfig, z } from "@hono/zod-openapi";
import { errorAnswer } from "../http/fields.ts";
import type { ScopedRoute } from "../http/openapi.ts";
import { keyIsUsed } from "./answer.ts";
import type { CommandRoute, Key } from "./route.ts";

// What the descriptions of all commands have in common: the headers, and how a request is answered
// that can't be read or whose key belongs to another one.

type Described<Fields> = Pick<
  CommandRoute<Fields, never>,
  "route" | "headers" | "key" | "body" | "refusals" | "invalid"
>;
type Responses = RouteConfig["responses"];

export function described<Fields>(command: Described<Fields>): ScopedRoute {
  const { route, headers: own, key, body } = command;
  const answers: Responses = { ...route.responses, ...refusalsOf(command) };
  const headers = z.object(key ? { ...traceOfAnswer, ...replayed } : traceOfAnswer);
  const withHeaders = Object.entries(answers).map(([status, answer]) => [
    status,
    { ...answer, headers },
  ]);
  return {
    ...route,
    request: {
      ...route.request,
      headers: z.object({ ...(key ? keyHeader(key) : {}), ...own, ...traceHeaders }),
      ...(body ? { body: jsonBody(body) } : {}),
    },
    responses: { ...Object.fromEntries(withHeaders), ...unreadable(command) },
  };
}

function refusalsOf<Fields>({ key, refusals }: Described<Fields>): Responses {
  if (!key && !refusals) return {};
  const { description = "The key was used for another request", messages = {} } = refusals ?? {};
  return {
    409: errorAnswer<string>(
      key && refusals ? `${description}, or the key was used for another request` : description,
      key ? { ...messages, IDEMPOTENCY_KEY_CONFLICT: keyIsUsed } : messages,
    ),
  };
}

function unreadable<Fields>({ key, body, invalid }: Described<Fields>): Responses {
  if (!key && !body) return {};
  const fields = Object.entries(body?.schema.shape ?? {});
  const required = fields.find(([, field]) => !z.safeParse(field, undefined).success);
  const missing = required?.[0] ?? (key && !key.isOptional ? "Idempotency-Key" : "request body");
  return {
    400: errorAnswer<string>("A header, the body or a field is missing or invalid", {
      BAD_REQUEST: `${missing} is required`,
      ...invalid,
    }),
    ...(body ? unreadableBody : {}),
  };
}

const unreadableBody: Responses = {
  408: errorAnswer("The body took too long to arrive", {
    REQUEST_TIMEOUT: "request body took over 10 seconds",
  }),
  413: errorAnswer("The body is too large", {
    PAYLOAD_TOO_LARGE: "request body is over 16 KiB",
  }),
  415: errorAnswer("The body is not JSON", {
    UNSUPPORTED_MEDIA_TYPE: "Content-Type must be application/json",
  }),
};

function jsonBody<Fields>(
  { schema, example }: NonNullable<CommandRoute<Fields, never>["body"]>,
): NonNullable<NonNullable<RouteConfig["request"]>["body"]> {
  return { required: true, content: { "application/json": { schema, example } } };
}

export const keyPattern = /^[\x21-\x7e]{1,255}$/;

const keyHeader = ({ advice, example, isOptional = false, keptFor = "24 hours" }: Key) => {
  const schema = z.string().regex(keyPattern);
  return {
    "Idempotency-Key": (isOptional ? schema.optional() : schema).openapi({
      description: `Makes the request safe to repeat for ${keptFor}; ${advice}`,
      example,
    }),
  };
};

const traceHeaders = {
  traceparent: z.string().optional().openapi({
    description: "W3C trace context; the change and its event get its trace id",
    example: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
  }),
  "X-Trace-Id": z.string().optional().openapi({
    description:
      "Trace id of the change, 1 to 255 visible ASCII characters; overrides that of traceparent",
  }),
};

const traceOfAnswer = {
  "X-Trace-Id": z.string().openapi({ description: "Trace id of the change" }),
};

const replayed = {
  "Idempotency-Replayed": z.literal("true").optional().openapi({
    description: "Present if this is the stored answer to an earlier request with the same key",
  }),
};
