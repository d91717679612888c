import { type OpenAPIHono, type RouteConfig, z } from "@hono/zod-openapi";
import type { Scope } from "@kenri/proto/scopes.ts";
import { noCredential, noSession, scopeMissing } from "../access/refusals.ts";
import { errorAnswer } from "./fields.ts";

// The OpenAPI description of a service, and the parts that all of its routes have in common.

// Every route must state who may call it.
export interface ScopedRoute extends RouteConfig {
  scope: Scope | "public" | "session"; // "session" is for people who are logged in
}

export type Description = ReturnType<OpenAPIHono["getOpenAPI31Document"]>;

export interface Tag {
  name: string;
  description: string;
}

const commonTags: Tag[] = [
  { name: "Operation", description: "Inspect and repair. Available only when debug is enabled." },
  { name: "Service", description: "Health, metrics, and this description." },
];

const general =
  "Every error is `{code, message}`. An unknown path is answered with 404 `NOT_FOUND`, and a method " +
  "that a path does not support with 405 `METHOD_NOT_ALLOWED` and `Allow`; both need a credential. A " +
  "url over 16 KiB is answered with 414 `URI_TOO_LONG`, and a caller that sends too many requests with " +
  "429 `TOO_MANY_REQUESTS`. After a 5xx, a lost connection or a time-out a request may be repeated; a " +
  "change needs the same `Idempotency-Key`. After a 503 or a 429, wait for as many seconds as " +
  "`Retry-After` contains.";

export function describeApi(app: OpenAPIHono, title: string, ownTags: Tag[]): Description {
  app.openAPIRegistry.registerComponent("securitySchemes", "bearer", {
    type: "http",
    scheme: "bearer",
    description:
      "A token from the settings of this service, or a JWT from the configured issuer. " +
      "A service without either needs no credential, and can be reached only from its own machine.",
  });
  const description = app.getOpenAPI31Document({
    openapi: "3.1.0",
    info: { title, version: "1", description: general },
    servers: [{ url: "/", description: "This service" }],
  });
  const used = new Set(
    app.openAPIRegistry.definitions.flatMap((definition) =>
      definition.type === "route" ? definition.route.tags ?? [] : []
    ),
  );
  const tags = [...ownTags, ...commonTags].filter(({ name }) => used.has(name));
  return { ...description, tags };
}

// Adds what all routes have: an operation id, a tag, and the errors that any route may answer with.
export function completed({ scope, ...route }: ScopedRoute): RouteConfig {
  return {
    operationId: operationIdOf(route),
    tags: [/^\/(debug|operations)\//.test(route.path) ? "Operation" : "Service"],
    ...route,
    security: securityOf(scope),
    responses: {
      500: brokenAnswer,
      ...refusalsOf(scope),
      ...route.responses,
      503: withRetryAfter(route),
    },
  };
}

function securityOf(scope: ScopedRoute["scope"]): Record<string, string[]>[] {
  if (scope === "public") return [];
  return scope === "session" ? [{ session: [] }] : [{ bearer: [scope] }];
}

function refusalsOf(scope: ScopedRoute["scope"]): RouteConfig["responses"] {
  if (scope === "public") return {};
  return scope === "session" ? ofVisitors : refusals(scope);
}

const ofVisitors: RouteConfig["responses"] = {
  401: errorAnswer("There is no session, or it has ended", { UNAUTHORIZED: noSession().message }),
  403: errorAnswer("The account is suspended, or an unsafe request lacks its CSRF token"),
};

function refusals(scope: Scope): RouteConfig["responses"] {
  return {
    401: {
      ...errorAnswer("The credential is missing or unknown", {
        UNAUTHORIZED: noCredential().message,
      }),
      headers: challengeHeaders,
    },
    403: {
      ...errorAnswer(`The credential lacks the scope \`${scope}\``, {
        FORBIDDEN: scopeMissing(scope).message,
      }),
      headers: challengeHeaders,
    },
  };
}

const challengeHeaders = z.object({
  "WWW-Authenticate": z.string().openapi({ description: "Which credential is needed (RFC 6750)" }),
});

const brokenAnswer = errorAnswer("An error in the service", {
  INTERNAL_ERROR: "the request failed because of an error in the service",
});

const retryHeaders = z.object({
  "Retry-After": z.string().regex(/^[1-9]\d*$/).openapi({ description: "Seconds to wait" }),
});

function withRetryAfter({ responses }: RouteConfig): RouteConfig["responses"][503] {
  const answer = responses[503] ?? errorAnswer(
    "A dependency is unavailable, too many requests are waiting, or the service is stopping",
    { SERVICE_UNAVAILABLE: "the database can't be reached, try again" },
  );
  return { ...answer, headers: retryHeaders };
}

// "get /debug/inbox/{user_id}" becomes getDebugInboxUserId, unless the route has an operation id.
function operationIdOf({ method, path }: RouteConfig): string {
  const words = path.split(/[^a-zA-Z0-9]+/).filter((word) => word !== "");
  return method + words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join("");
}
