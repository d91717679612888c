import type { OpenAPIHono } from "@hono/zod-openapi";
import type { Door } from "@kenri/shared/access/door.ts";
import { type Checks, createApp } from "@kenri/shared/http/app.ts";
import type { Log } from "@kenri/shared/process/log.ts";
import { addOperatorRoutes, type OperatorParts } from "./operators/routes.ts";

export interface AppParts {
  operators: OperatorParts | undefined; // nothing of their side exists unless it is switched on
  checks: Checks;
  door: Door;
  log: Log;
}

export function notificationApp({ operators, checks, door, log }: AppParts): OpenAPIHono {
  const app = createApp("Kenri notification", checks, door, log);
  if (operators) addOperatorRoutes(app, operators);
  return app;
}
