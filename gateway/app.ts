import type { OpenAPIHono } from "@hono/zod-openapi";
import type { Authenticator } from "@kenri/shared/access/authenticator.ts";
import { createApp } from "@kenri/shared/http/app.ts";
import type { Checks } from "@kenri/shared/http/common_routes.ts";
import { addRoute } from "@kenri/shared/http/route.ts";
import type { Log } from "@kenri/shared/process/log.ts";
import { statusOfCode } from "./errors.ts";
import { me, meRoute } from "./me.ts";
import { type AdmitParts, visitorsOf } from "./session/admit.ts";
import { renewCookie } from "./session/renew_cookie.ts";

export interface AppParts extends AdmitParts {
  checks: Checks;
  authenticator: Authenticator;
  log: Log;
}

export function gatewayApp(parts: AppParts): OpenAPIHono {
  const { checks, authenticator, log, csrf } = parts;
  const app = createApp({
    title: "Kenri gateway",
    tags: [{ name: "People", description: "What a person who is logged in sees and does." }],
    errors: statusOfCode,
    checks,
    authenticator,
    visitors: visitorsOf(parts),
    log,
  });
  app.use(renewCookie(parts));
  addRoute(app, meRoute, me(csrf));
  return app;
}
