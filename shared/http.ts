import { OpenAPIHono, type RouteConfig, z } from "@hono/zod-openapi";
import type { Handler, HonoRequest } from "hono";
import { BatchFull } from "./batch.ts";
import { completed, describeApi } from "./description.ts";
import { ApiError, tooManyWaiting, unavailable } from "./errors.ts";
import { errorAnswer } from "./fields.ts";
import type { Log } from "./log.ts";
import { metrics } from "./metrics.ts";
import { apiPage } from "./pages/api_page.tsx";
import { pageAnswer } from "./pages/page.tsx";
import { isNotAdmitted, isUnavailable } from "./postgres.ts";

// What both services answer alike: errors in one shape, health, metrics and the API description.

// What the service needs, by what to say when it is missing.
export type Checks = Record<string, () => Promise<boolean> | boolean>;

export function createApp(title: string, checks: Checks, log: Log): OpenAPIHono {
  const app = new OpenAPIHono();
  app.notFound(() => answerError(new ApiError("NOT_FOUND", "there is no such path")));
  app.onError((error) => answerError(toApiError(error, log)));
  const json = (body: unknown) => Response.json(body);
  addRoute(app, plainRoute("/livez", "Liveness", "The process runs"), () => json({ status: "ok" }));
  const readyz = plainRoute("/readyz", "Readiness", "Everything it needs is there");
  readyz.responses[503] = errorAnswer("Something it needs is missing; the message says what", {
    SERVICE_UNAVAILABLE: "not ready: NATS can't be reached",
  });
  addRoute(app, readyz, async () => {
    const missing = await failedChecks(checks);
    if (missing.length > 0) throw unavailable(`not ready: ${missing.join(", ")}`);
    return json({ status: "ok" });
  });
  addRoute(
    app,
    plainRoute("/metrics", "Figures", "In the Prometheus text format", "text/plain"),
    async () => {
      const headers = { "Content-Type": metrics.contentType };
      return new Response(await metrics.metrics(), { headers });
    },
  );
  // Made when somebody asks: by then all routes are there.
  const api = once(() => describeApi(app, title));
  const page = once(() => apiPage(api()));
  addRoute(
    app,
    plainRoute("/openapi.json", "This description for programs", "As OpenAPI 3.1"),
    () => json(api()),
  );
  addRoute(
    app,
    plainRoute("/docs", "This description for people", "A page to read", "text/html"),
    () => pageAnswer(page()),
  );
  return app;
}

// Registers a route with its description, and the refusal of every other method on its path.
export function addRoute(app: OpenAPIHono, route: RouteConfig, handler: Handler): void {
  app.openAPIRegistry.registerPath(completed(route));
  const path = route.path.replaceAll(/\{(\w+)\}/g, ":$1");
  const method = route.method.toUpperCase();
  app.on(method, path, handler);
  const allow = method === "GET" ? "GET, HEAD" : method;
  app.all(path, ({ req }) => {
    throw new ApiError("METHOD_NOT_ALLOWED", `${req.method} is not allowed here, only ${allow}`, {
      Allow: allow,
    });
  });
}

// A part of the path, decoded. Hono leaves what it can't decode as it is, and then "%ff" would be
// the name of somebody.
export function pathPart(req: HonoRequest, name: string): string {
  try {
    decodeURIComponent(req.path);
  } catch {
    throw new ApiError("BAD_REQUEST", `${name} must be percent-encoded UTF-8`);
  }
  return req.param(name) ?? "";
}

export function answerError(error: ApiError): Response {
  return Response.json(error.body, { status: error.status, headers: error.headers });
}

function plainRoute(
  path: string,
  summary: string,
  description: string,
  type = "application/json",
): RouteConfig {
  const schema = type === "application/json" ? z.looseObject({}) : z.string();
  return {
    method: "get",
    path,
    summary,
    responses: { 200: { description, content: { [type]: { schema } } } },
  };
}

function once<Value extends string | object>(make: () => Value): () => Value {
  let made: Value | undefined;
  return () => made ??= make();
}

async function failedChecks(checks: Checks): Promise<string[]> {
  const results = await Promise.all(
    Object.entries(checks).map(async ([name, check]) => {
      const passed = await Promise.resolve().then(check).catch(() => false);
      return passed ? [] : [name];
    }),
  );
  return results.flat();
}

function toApiError(error: unknown, log: Log): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof BatchFull) return tooManyWaiting();
  if (isUnavailable(error) || isNotAdmitted(error)) {
    return unavailable("the database can't be reached, try again with the same Idempotency-Key");
  }
  log.error("A request failed: {error}", { error });
  return new ApiError("INTERNAL_ERROR", "the request failed because of an error in the service");
}
