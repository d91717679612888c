import type { OpenAPIHono } from "@hono/zod-openapi";
import { addRoute } from "../http/route.ts";
import { deadLettersRoute, errorsRoute, listDeadLetters, listErrors } from "./dead_letters.ts";
import { type FindOperations, listOperations, operationsRoute } from "./operation_log.ts";
import { type SendBack, sendBack, sendBackRoute } from "./send_back.ts";

// The endpoints of every service that keeps dead letters.
export function addDeadLetterRoutes(
  app: OpenAPIHono,
  service: string,
  findOperations: FindOperations,
  tables: SendBack[],
): void {
  addRoute(app, deadLettersRoute(service), listDeadLetters(tables));
  addRoute(app, errorsRoute(service), listErrors(tables));
  addRoute(app, operationsRoute(service), listOperations(findOperations));
  addRoute(app, sendBackRoute(service), sendBack(tables));
}
