import type { OpenAPIHono } from "@hono/zod-openapi";
import { addRoute, type Checks, createApp } from "@kenri/shared/http";
import type { Log } from "@kenri/shared/log";
import type { Database } from "@kenri/shared/postgres";
import { inbox, inboxRoute } from "./inbox.ts";

export interface AppParts {
  database: Database;
  checks: Checks;
  log: Log;
}

// Nothing of the debug side exists unless it is switched on.
export function notificationApp(
  { database, checks, log }: AppParts,
  debug: boolean,
): OpenAPIHono {
  const app = createApp("Kenri notification", checks, log);
  if (debug) addRoute(app, inboxRoute, inbox(database));
  return app;
}
