import type { OpenAPIHono } from "@hono/zod-openapi";
import { addRoute } from "../http/route.ts";
import type { Database } from "../postgres/postgres.ts";
import { deadLettersRoute, errorsRoute, listDeadLetters, listErrors } from "./dead_letters.ts";
import { listOperations, operationsRoute } from "./operation_log.ts";
import { type SendBack, sendBack, sendBackRoute } from "./send_back.ts";

// The endpoints of every service that keeps dead letters.
export function addDeadLetterRoutes(
  app: OpenAPIHono,
  service: string,
  database: Database,
  tables: SendBack[],
): void {
  addRoute(app, deadLettersRoute(service), listDeadLetters(tables));
  addRoute(app, errorsRoute(service), listErrors(tables));
  addRoute(app, operationsRoute(service), listOperations(database));
  addRoute(app, sendBackRoute(service), sendBack(tables));
}
