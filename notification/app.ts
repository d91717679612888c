import type { OpenAPIHono } from "@hono/zod-openapi";
import { type Checks, createApp } from "@kenri/shared/http";
import type { Log } from "@kenri/shared/log";
import { addOperatorRoutes, type OperatorParts } from "./operator_routes.ts";

export interface AppParts {
  operators: OperatorParts | undefined; // nothing of their side exists unless it is switched on
  checks: Checks;
  log: Log;
}

export function notificationApp({ operators, checks, log }: AppParts): OpenAPIHono {
  const app = createApp("Kenri notification", checks, log);
  if (operators) addOperatorRoutes(app, operators);
  return app;
}
