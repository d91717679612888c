import type { OpenAPIHono } from "@hono/zod-openapi";
import type { Authenticator } from "@kenri/shared/access/authenticator.ts";
import { createApp } from "@kenri/shared/http/app.ts";
import type { Checks } from "@kenri/shared/http/common_routes.ts";
import type { Log } from "@kenri/shared/process/log.ts";
import { addOperatorRoutes, type OperatorParts } from "./operators/routes.ts";

export interface AppParts {
  operators: OperatorParts | undefined; // undefined unless debug is enabled
  checks: Checks;
  authenticator: Authenticator;
  log: Log;
}

export function notificationApp({ operators, checks, authenticator, log }: AppParts): OpenAPIHono {
  const app = createApp({ title: "Kenri notification", checks, authenticator, log });
  if (operators) addOperatorRoutes(app, operators);
  return app;
}
