import { OpenAPIHono, z } from "@hono/zod-openapi";
import type { Context, Handler, HonoRequest, Next } from "hono";
import { admit, isPublic, leadsToSignIn, needScope, signInPath } from "../access/admit.ts";
import type { Scope } from "../access/caller.ts";
import type { Authenticator } from "../access/authenticator.ts";
import { BatchFull } from "../queue/batch.ts";
import { completed, describeApi, type ScopedRoute } from "./openapi.ts";
import { ApiError, unavailable } from "./errors.ts";
import { errorAnswer } from "./fields.ts";
import type { Series } from "../telemetry/histogram.ts";
import { tooManyWaiting } from "./limits.ts";
import type { Log } from "../process/log.ts";
import { histogram, metrics, shortSeconds } from "../telemetry/metrics.ts";
import { apiPage } from "./pages/api_page.tsx";
import { pageAnswer } from "./pages/page.tsx";
import { isNotAdmitted, isUnavailable } from "../postgres/postgres.ts";
import { refuseStrangeName } from "../access/rebinding.ts";
import { scrape } from "../telemetry/scrape.ts";
import { nameRequest } from "../telemetry/tracing.ts";

// What both services answer alike: errors in one shape, health, metrics and the API description.

// What the service needs, by what to say when it is missing.
export type Checks = Record<string, () => Promise<boolean> | boolean>;

export function createApp(
  title: string,
  checks: Checks,
  authenticator: Authenticator,
  log: Log,
): OpenAPIHono {
  const app = new OpenAPIHono();
  app.use((context, next) => admitFirst(context, authenticator, next));
  app.notFound(() => {
    observeUnrouted(404);
    return answerError(new ApiError("NOT_FOUND", "there is no such path"));
  });
  app.onError((error, context) => answerError(toApiError(error, context, log)));
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
    plainRoute(
      "/metrics",
      "Figures",
      "In the Prometheus text format",
      "text/plain",
      "metrics:read",
    ),
    async () => {
      const headers = { "Content-Type": metrics.contentType };
      return new Response(await scrape(), { headers });
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

// What the log says of a request that failed, where its handler knows more than its route.
declare module "hono" {
  interface ContextVariableMap {
    about?: Record<string, unknown>;
  }
}

// Everybody else is refused before a route is looked for and before any of the body is read.
function admitFirst(
  context: Context,
  authenticator: Authenticator,
  next: Next,
): Promise<Response | void> {
  try {
    if (authenticator.open) refuseStrangeName(context.req.url);
    const admitting = admit(context, authenticator);
    if (admitting === undefined) return next();
    return admitting.then(next, (error) => refuseAdmission(context, error));
  } catch (error) {
    return Promise.resolve(refuseAdmission(context, error));
  }
}

function refuseAdmission(context: Context, error: unknown): Response {
  if (leadsToSignIn(context, error)) return context.redirect(signInPath, 303);
  nameRequest(context.req.method, "none"); // its path may name a user
  observeUnrouted(statusOf(error));
  throw error;
}

// Registers a route with its description, and the refusal of every other method on its path.
export function addRoute(app: OpenAPIHono, route: ScopedRoute, handler: Handler): void {
  if (isPublic(route.path) !== (route.scope === "public")) {
    throw new Error(`Whether ${route.path} is public must be said in its route and at the door`);
  }
  app.openAPIRegistry.registerPath(completed(route));
  const path = route.path.replaceAll(/\{(\w+)\}/g, ":$1");
  const method = route.method.toUpperCase();
  app.on(method, path, observed(method, route.path, scoped(route.scope, handler)));
  const allow = method === "GET" ? "GET, HEAD" : method;
  const refuse: Handler = ({ req }) => {
    throw new ApiError("METHOD_NOT_ALLOWED", `${req.method} is not allowed here, only ${allow}`, {
      Allow: allow,
    });
  };
  app.all(path, observed("other", route.path, refuse));
}

function scoped(scope: Scope | "public", handler: Handler): Handler {
  if (scope === "public") return handler;
  return (context, next) => {
    needScope(context, scope);
    return handler(context, next);
  };
}

const requests = histogram(
  "kenri_http_request_duration_seconds",
  "HTTP requests, from their headers to the answer; its `_count` is their number",
  shortSeconds,
  ["route", "status"],
);

// By the pattern of the route, as the paths would be without number.
function observed(method: string, route: string, handler: Handler): Handler {
  const ofStatus: Record<number, Series> = {};
  return async (context, next) => {
    const from = performance.now();
    nameRequest(method, route);
    let status = 500;
    try {
      const response: Response = await handler(context, next);
      status = response.status;
      return response;
    } catch (error) {
      status = statusOf(error);
      throw error;
    } finally {
      const series = ofStatus[status] ??= requests.labels(route, `${status}`);
      series.observe((performance.now() - from) / 1_000);
    }
  };
}

// No such path, or refused before it was looked at.
export function observeUnrouted(status: number): void {
  requests.labels("none", `${status}`).observe(0);
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
  scope: ScopedRoute["scope"] = "public",
): ScopedRoute {
  const schema = type === "application/json" ? z.looseObject({}) : z.string();
  return {
    method: "get",
    path,
    scope,
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

// With which status an error is answered.
export function statusOf(error: unknown): number {
  return error instanceof BatchFull ? 503 : knownError(error)?.status ?? 500;
}

function toApiError(error: unknown, { req, get }: Context, log: Log): ApiError {
  if (error instanceof BatchFull) return tooManyWaiting();
  const known = knownError(error);
  if (known) return known;
  log.error("A request failed: {error}", {
    error,
    method: req.method,
    caller: get("caller")?.name || undefined,
    ...get("about"),
  });
  return new ApiError("INTERNAL_ERROR", "the request failed because of an error in the service");
}

function knownError(error: unknown): ApiError | undefined {
  if (error instanceof ApiError) return error;
  if (isUnavailable(error) || isNotAdmitted(error)) {
    return unavailable("the database can't be reached, try again with the same Idempotency-Key");
  }
  return undefined;
}
