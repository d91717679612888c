import { type OpenAPIHono, type RouteConfig, z } from "@hono/zod-openapi";
import { errorAnswer } from "./fields.ts";

// What is said of a service in /openapi.json besides what each of its routes says.

export type Description = ReturnType<OpenAPIHono["getOpenAPI31Document"]>;

const tags = [
  { name: "Entitlements", description: "Change a user's rights, and see what a user has." },
  { name: "Operation", description: "Look inside, and mend. Only where debug is enabled." },
  { name: "Service", description: "Health, figures, and this description." },
];

const general =
  "Every error is `{code, message}`. A path that is not listed here is answered with 404 " +
  "`NOT_FOUND`, a method that a path does not have with 405 `METHOD_NOT_ALLOWED` and `Allow`. " +
  "After a 5xx, a lost connection or a time-out the same request may be repeated, changes with the " +
  "same `Idempotency-Key`; after a 503 not before the seconds that `Retry-After` says.";

export function describeApi(app: OpenAPIHono, title: string): Description {
  const description = app.getOpenAPI31Document({
    openapi: "3.1.0",
    info: { title, version: "1", description: general },
    servers: [{ url: "/", description: "This service" }],
    security: [], // whom it answers is decided before it
  });
  const used = new Set(
    app.openAPIRegistry.definitions.flatMap((definition) =>
      definition.type === "route" ? definition.route.tags ?? [] : []
    ),
  );
  return { ...description, tags: tags.filter(({ name }) => used.has(name)) };
}

// The route with what holds for all: its name, its tag, and the errors that each may answer with.
export function completed(route: RouteConfig): RouteConfig {
  return {
    operationId: operationIdOf(route),
    tags: [/^\/(debug|operations)\//.test(route.path) ? "Operation" : "Service"],
    ...route,
    responses: { 500: brokenAnswer, ...route.responses, 503: withRetryAfter(route) },
  };
}

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
