import { type OpenAPIHono, type RouteConfig, z } from "@hono/zod-openapi";
import type { Scope } from "../access/caller.ts";
import { noCredential, scopeMissing } from "../access/refusals.ts";
import { errorAnswer } from "./fields.ts";

// What is said of a service in /openapi.json besides what each of its routes says.

// Without a scope there is no route: somebody has to say who may call it.
export interface ScopedRoute extends RouteConfig {
  scope: Scope | "public";
}

export type Description = ReturnType<OpenAPIHono["getOpenAPI31Document"]>;

const tags = [
  { name: "Entitlements", description: "Change a user's rights, and see what a user has." },
  { name: "Operation", description: "Look inside, and mend. Only where debug is enabled." },
  { name: "Service", description: "Health, figures, and this description." },
];

const general =
  "Every error is `{code, message}`. A path that is not listed here is answered with 404 " +
  "`NOT_FOUND`, a method that a path does not have with 405 `METHOD_NOT_ALLOWED` and `Allow`, both " +
  "only to those who show a credential. A url over 16 KiB is answered with 414 `URI_TOO_LONG`, a " +
  "caller that asks too often with 429 `TOO_MANY_REQUESTS`. " +
  "After a 5xx, a lost connection or a time-out the same request may be repeated, changes with the " +
  "same `Idempotency-Key`; after a 503 or a 429 not before the seconds that `Retry-After` says.";

export function describeApi(app: OpenAPIHono, title: string): Description {
  app.openAPIRegistry.registerComponent("securitySchemes", "bearer", {
    type: "http",
    scheme: "bearer",
    description: "A token of this service's settings, or a JWT of the issuer that they name. " +
      "Services without either are reached from their own machine only, and ask for none.",
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
  return { ...description, tags: tags.filter(({ name }) => used.has(name)) };
}

// The route with what holds for all: its name, its tag, and the errors that each may answer with.
export function completed({ scope, ...route }: ScopedRoute): RouteConfig {
  return {
    operationId: operationIdOf(route),
    tags: [/^\/(debug|operations)\//.test(route.path) ? "Operation" : "Service"],
    ...route,
    security: scope === "public" ? [] : [{ bearer: [scope] }],
    responses: {
      500: brokenAnswer,
      ...(scope === "public" ? {} : refusals(scope)),
      ...route.responses,
      503: withRetryAfter(route),
    },
  };
}

function refusals(scope: Scope): RouteConfig["responses"] {
  return {
    401: {
      ...errorAnswer("No credential, or not one that is known", {
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
  "WWW-Authenticate": z.string().openapi({ description: "What to show, by RFC 6750" }),
});

const brokenAnswer = errorAnswer("An error in the service", {
  INTERNAL_ERROR: "the request failed because of an error in the service",
});

const retryHeaders = z.object({
  "Retry-After": z.string().regex(/^[1-9]\d*$/).openapi({ description: "Seconds" }),
});

function withRetryAfter({ responses }: RouteConfig): RouteConfig["responses"][503] {
  const answer = responses[503] ?? errorAnswer(
    "What it needs can't be reached, too many requests are waiting, or the service is stopping",
    { SERVICE_UNAVAILABLE: "the database can't be reached, try again" },
  );
  return { ...answer, headers: retryHeaders };
}

// "get /debug/inbox/{user_id}" is getDebugInboxUserId, where the route has no better name.
function operationIdOf({ method, path }: RouteConfig): string {
  const words = path.split(/[^a-zA-Z0-9]+/).filter((word) => word !== "");
  return method + words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join("");
}
