import type { OpenAPIHono } from "@hono/zod-openapi";
import type { Authenticator } from "@kenri/shared/access/authenticator.ts";
import { createApp } from "@kenri/shared/http/app.ts";
import type { Checks } from "@kenri/shared/http/common_routes.ts";
import { addRoute } from "@kenri/shared/http/route.ts";
import type { Log } from "@kenri/shared/process/log.ts";
import type { Dependencies } from "./dependencies.ts";
import { statusOfCode } from "./errors.ts";
import { logout, type LogoutParts, logoutRoute } from "./logout.ts";
import { addLogin, type LoginParts } from "./login/routes.ts";
import { me, meRoute } from "./me.ts";
import { status, type StatusParts, statusRoute } from "./operators/status.ts";
import { atOneName } from "./page/one_name.ts";
import { addPage } from "./page/page.tsx";
import { addPassedRoutes } from "./pass_on.ts";
import { profile, profileRoute } from "./profile.ts";
import { type AdmitParts, visitorsOf } from "./session/admit.ts";
import { renewCookie } from "./session/renew_cookie.ts";
import { waitsOf } from "./waiting.ts";

export interface AppParts extends AdmitParts, LogoutParts {
  dependencies: Dependencies;
  stop: AbortSignal;
  modes: string[]; // in which people can be matched
  login: LoginParts;
  operators: StatusParts | undefined; // undefined unless debug is enabled
  checks: Checks;
  authenticator: Authenticator;
  log: Log;
}

export function gatewayApp(parts: AppParts): OpenAPIHono {
  const { operators, checks, authenticator, log, csrf } = parts;
  const app = createApp({
    title: "Kenri gateway",
    tags: [
      { name: "Login", description: "The way to the issuer and back." },
      { name: "People", description: "What a person who is logged in sees and does." },
    ],
    errors: statusOfCode,
    checks,
    authenticator,
    visitors: visitorsOf(parts),
    log,
  });
  app.use(renewCookie(parts));
  for (const path of ["/", "/login"]) app.use(path, atOneName(parts.publicUrl));
  addPage(app, parts.modes);
  addLogin(app, parts.login);
  addRoute(app, meRoute, me(csrf));
  addRoute(app, profileRoute, profile(parts.dependencies));
  addPassedRoutes(app, { dependencies: parts.dependencies, wait: waitsOf(parts) });
  addRoute(app, logoutRoute, logout(parts));
  if (operators) addRoute(app, statusRoute, status(operators));
  return app;
}
