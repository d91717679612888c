import type { OpenAPIHono } from "@hono/zod-openapi";
import { addRoute } from "@kenri/shared/http/route.ts";
import { eraseUserRoute } from "@kenri/shared/operators/erasure.ts";
import { deadMessages } from "@kenri/shared/inbox/dead_messages.ts";
import type { NatsLink } from "@kenri/shared/nats/link.ts";
import type { Database } from "@kenri/shared/postgres/postgres.ts";
import type { Wakeup } from "@kenri/shared/process/signals.ts";
import { operationsIn } from "@kenri/shared/operators/operation_log.ts";
import { addDeadLetterRoutes } from "@kenri/shared/operators/routes.ts";
import { deadDeliveries } from "../dead_letters/dead_deliveries.ts";
import { type EventInboxes, natsDeadLetters } from "../consume_events.ts";
import { status, statusRoute } from "./status.ts";
import { eraseUser } from "./erase_user.ts";
import { inboxRoute, listNotifications } from "../list_notifications.ts";
import { attemptsRoute, listAttempts } from "./orders/attempts.ts";
import { deadOrders } from "./orders/dead_orders.ts";
import { endpointsRoute, listEndpoints } from "./orders/endpoints.ts";
import { listOrders, ordersRoute } from "./orders/orders.ts";
import { replayOf, replayOfRoute } from "./orders/replay.ts";
import { eventsRoute, timeline } from "./timeline.ts";

export interface OperatorParts {
  database: Database;
  wakeDelivery: Wakeup;
  wakeOrders: Wakeup;
  inboxes: EventInboxes;
  link: NatsLink;
}

export function addOperatorRoutes(app: OpenAPIHono, parts: OperatorParts): void {
  const { database, wakeDelivery, wakeOrders, inboxes, link } = parts;
  const tables = [
    deadDeliveries(database, wakeDelivery),
    deadMessages({ database, table: natsDeadLetters }, inboxes),
    deadOrders(database, wakeOrders),
  ];
  addRoute(app, inboxRoute, listNotifications(database));
  addRoute(app, statusRoute, status(database, tables, link, inboxes));
  addRoute(app, eventsRoute, timeline(database));
  addRoute(app, ordersRoute, listOrders(database));
  addRoute(app, attemptsRoute, listAttempts(database));
  addRoute(app, endpointsRoute, listEndpoints(database));
  addRoute(app, replayOfRoute, replayOf(database, wakeOrders));
  addDeadLetterRoutes(app, "notification", operationsIn(database), tables);
  addRoute(app, eraseUserRoute("notification"), eraseUser(database, inboxes[0].decode));
}
