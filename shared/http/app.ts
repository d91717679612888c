import { OpenAPIHono } from "@hono/zod-openapi";
import type { Context, Next } from "hono";
import { admit, redirectsToSignIn, signInPath } from "../access/admit.ts";
import type { Authenticator } from "../access/authenticator.ts";
import { requireLoopbackName } from "../access/rebinding.ts";
import type { Visitors } from "../access/visitors.ts";
import type { Log } from "../process/log.ts";
import { nameRequest } from "../telemetry/tracing.ts";
import { addCommonRoutes, type Checks } from "./common_routes.ts";
import { answerError, statusOf, toApiError } from "./error_answers.ts";
import { ApiError, statusOfCode } from "./errors.ts";
import { errorSchema } from "./fields.ts";
import type { Tag } from "./openapi.ts";
import { answerUnrouted, observeUnrouted, setVisitors } from "./route.ts";

// The HTTP application of a service: it admits every request before it looks for a route, and
// answers every error in one form.

export interface AppOptions {
  title: string;
  tags?: Tag[]; // of the routes that only this service has
  errors?: Record<string, number>; // of a service with error codes of its own
  checks: Checks;
  authenticator: Authenticator;
  visitors?: Visitors; // of a service that people use with a session
  log: Log;
}

export function createApp(
  { errors = statusOfCode, authenticator, visitors, log, ...described }: AppOptions,
): OpenAPIHono {
  const app = new OpenAPIHono();
  app.openAPIRegistry.register("Error", errorSchema(Object.keys(errors)));
  if (visitors) setVisitors(app, visitors);
  app.use((context, next) => admitFirst(context, authenticator, visitors, next));
  app.notFound(() => answerUnrouted(new ApiError("NOT_FOUND", "no such path")));
  app.onError((error, context) => answerError(toApiError(error, context, log)));
  addCommonRoutes(app, described);
  return app;
}

// A refused request learns nothing about the routes, and none of its body is read. There is no
// await here, because most callers are known at once and a promise costs time.
function admitFirst(
  context: Context,
  authenticator: Authenticator,
  visitors: Visitors | undefined,
  next: Next,
): Promise<Response | void> {
  try {
    if (authenticator.open) requireLoopbackName(context.req.url);
    const admitting = admit(context, authenticator, visitors);
    if (admitting === undefined) return next();
    return admitting.then(next, (error) => refuseAdmission(context, error));
  } catch (error) {
    return Promise.resolve(refuseAdmission(context, error));
  }
}

function refuseAdmission(context: Context, error: unknown): Response {
  if (redirectsToSignIn(context, error)) return context.redirect(signInPath, 303);
  nameRequest(context.req.method, "none"); // its path may name a user
  observeUnrouted(statusOf(error));
  throw error;
}
