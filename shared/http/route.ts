import type { OpenAPIHono } from "@hono/zod-openapi";
import type { Handler, HonoRequest } from "hono";
import { isPublic, requireScope } from "../access/admit.ts";
import type { Visitors } from "../access/visitors.ts";
import type { Series } from "../telemetry/histogram.ts";
import { histogram, shortSeconds } from "../telemetry/metrics.ts";
import { nameRequest } from "../telemetry/tracing.ts";
import { answerError, statusOf } from "./error_answers.ts";
import { ApiError } from "./errors.ts";
import { completed, type ScopedRoute } from "./openapi.ts";

// A route of a service: its description, its scope, its handler, and the time it takes.

// The methods that the paths of an app have.
const methodsOfPaths = new WeakMap<OpenAPIHono, Record<string, string[]>>();

const visitorsOf = new WeakMap<OpenAPIHono, Visitors>();

// Before any route of the app is added.
export function setVisitors(app: OpenAPIHono, visitors: Visitors): void {
  visitorsOf.set(app, visitors);
  app.openAPIRegistry.registerComponent("securitySchemes", "session", {
    type: "apiKey",
    in: "cookie",
    name: visitors.cookie,
    description: "The session of a person, which `/login` begins",
  });
}

// Registers a route with its description, and the refusal of all methods that its path does not
// have. A path may have several methods.
export function addRoute(app: OpenAPIHono, route: ScopedRoute, handler: Handler): void {
  const visitors = visitorsOf.get(app);
  if (isPublic(route.path, visitors) !== (route.scope === "public")) {
    throw new Error(`The route ${route.path} and access/admit.ts disagree whether it is public`);
  }
  if ((visitors?.isTheirs(route.path) ?? false) !== (route.scope === "session")) {
    throw new Error(`The route ${route.path} and the visitors disagree whether it needs a session`);
  }
  app.openAPIRegistry.registerPath(completed(route));
  const path = patternOf(route.path);
  const method = route.method.toUpperCase();
  app.on(method, path, observed(method, route.path, route.scope, handler));
  const paths = methodsOfPaths.get(app) ?? {};
  methodsOfPaths.set(app, paths);
  const methods = paths[path] ??= [];
  methods.push(method);
  if (methods.length === 1) app.all(path, refuseOthers(route.path, methods));
}

// In "/users/{user_id}:suspend" the parameter of Hono's pattern includes the verb. Such a route must be
// added before "/users/{user_id}", which has paths with a verb as well.
function patternOf(path: string): string {
  return path.replaceAll(/\{(\w+)\}:(\w+)/g, ":$1{[^/]+:$2}").replaceAll(/\{(\w+)\}/g, ":$1");
}

// Hono asks the handlers of a path in the order in which they were added, so this one passes on the
// methods that were added after it.
function refuseOthers(route: string, methods: string[]): Handler {
  const refuse = observed("other", route, "public", (context, next) => {
    const allow = methods.map((method) => method === "GET" ? "GET, HEAD" : method).join(", ");
    return refuseMethod(allow)(context, next);
  });
  return (context, next) => {
    const { method } = context.req;
    return methods.includes(method === "HEAD" ? "GET" : method) ? next() : refuse(context, next);
  };
}

export function refuseMethod(allow: string): Handler {
  return ({ req }) => {
    throw new ApiError("METHOD_NOT_ALLOWED", `${req.method} is not allowed here, only ${allow}`, {
      Allow: allow,
    });
  };
}

const requests = histogram(
  "kenri_http_request_duration_seconds",
  "time from the headers of a request to its answer; `_count` is the number of requests",
  shortSeconds,
  ["route", "status"],
);

// The label is the pattern of the route, because there is no limit to the number of different
// paths.
function observed(
  method: string,
  route: string,
  scope: ScopedRoute["scope"],
  handler: Handler,
): Handler {
  const seriesOfStatus: Record<number, Series> = {};
  return async (context, next) => {
    const from = performance.now();
    nameRequest(method, route);
    let status = 500;
    try {
      if (scope !== "public") requireScope(context, scope);
      const response: Response = await handler(context, next);
      status = response.status;
      return response;
    } catch (error) {
      status = statusOf(error);
      throw error;
    } finally {
      const series = seriesOfStatus[status] ??= requests.labels(route, `${status}`);
      series.observe((performance.now() - from) / 1_000);
    }
  };
}

// For a request that reached no route: its path does not exist, or it was refused before the
// look-up.
export function answerUnrouted(error: ApiError): Response {
  observeUnrouted(error.status);
  return answerError(error);
}

export function observeUnrouted(status: number): void {
  requests.labels("none", `${status}`).observe(0);
}

// A decoded part of the path, without the verb after it. Hono leaves what it can't decode unchanged,
// so "%ff" would become a user's name.
export function pathPart(req: HonoRequest, name: string): string {
  try {
    decodeURIComponent(req.path);
  } catch {
    throw new ApiError("BAD_REQUEST", `${name} must be percent-encoded UTF-8`);
  }
  const verb = /\{\[\^\/\]\+(:\w+)\}$/.exec(req.routePath)?.[1] ?? "";
  const part = req.param(name) ?? "";
  return verb && part.endsWith(verb) ? part.slice(0, -verb.length) : part;
}
