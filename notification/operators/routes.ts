import type { OpenAPIHono } from "@hono/zod-openapi";
import {
  deadLettersRoute,
  errorsRoute,
  listDeadLetters,
  listErrors,
} from "@kenri/shared/operators/dead_letters.ts";
import { addRoute } from "@kenri/shared/http/route.ts";
import { eraseUserRoute } from "@kenri/shared/operators/erasure.ts";
import type { NatsLink } from "@kenri/shared/nats/link.ts";
import { listOperations, operationsRoute } from "@kenri/shared/operators/operations.ts";
import { sendBack, sendBackRoute } from "@kenri/shared/operators/send_back.ts";
import { type AdvisoryParts, deadAdvisories } from "../dead_letters/dead_advisories.ts";
import { deadDeliveries } from "../dead_letters/dead_deliveries.ts";
import { type ConsumerName, status, statusRoute } from "./status.ts";
import { eraseUser } from "./erase_user.ts";
import { inbox, inboxRoute } from "./inbox.ts";
import { eventsRoute, timeline } from "./timeline.ts";

export interface OperatorParts extends AdvisoryParts {
  link: NatsLink;
  consumer: ConsumerName;
}

// What operators see and change.
export function addOperatorRoutes(app: OpenAPIHono, parts: OperatorParts): void {
  const { database, wakeDelivery, link, consumer } = parts;
  const tables = [deadDeliveries(database, wakeDelivery), deadAdvisories(parts)];
  addRoute(app, inboxRoute, inbox(database));
  addRoute(app, statusRoute, status(database, tables, link, consumer));
  addRoute(app, eventsRoute, timeline(database));
  addRoute(app, deadLettersRoute("notification"), listDeadLetters(tables));
  addRoute(app, errorsRoute("notification"), listErrors(tables));
  addRoute(app, operationsRoute("notification"), listOperations(database));
  addRoute(app, sendBackRoute("notification"), sendBack(tables));
  addRoute(app, eraseUserRoute("notification"), eraseUser(database));
}
