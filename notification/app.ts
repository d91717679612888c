import type { OpenAPIHono } from "@hono/zod-openapi";
import type { Authenticator } from "@kenri/shared/access/authenticator.ts";
import { commandBatch } from "@kenri/shared/commands/command.ts";
import { addCommand } from "@kenri/shared/commands/route.ts";
import { createApp } from "@kenri/shared/http/app.ts";
import type { Checks } from "@kenri/shared/http/common_routes.ts";
import { addRoute } from "@kenri/shared/http/route.ts";
import type { Database } from "@kenri/shared/postgres/postgres.ts";
import type { Log } from "@kenri/shared/process/log.ts";
import type { Handover } from "@kenri/shared/queue/handover.ts";
import type { Wakeup } from "@kenri/shared/process/signals.ts";
import { addEndpoints } from "./endpoints/routes.ts";
import { statusOfCode } from "./errors.ts";
import { listNotifications, notificationsRoute } from "./list_notifications.ts";
import { addOperatorRoutes, type OperatorParts } from "./operators/routes.ts";
import { acceptCommand, acceptRoute } from "./orders/accept_order.ts";
import { findOrder, findOrderByKey, orderByKeyRoute, orderRoute } from "./orders/order.ts";
import type { OrderRow } from "./orders/orders.ts";
import type { Sender } from "./orders/sender_client.ts";
import type { EndpointOptions } from "./orders/settings.ts";

export interface AppParts {
  database: Database;
  sender: Sender | undefined;
  toSend: Handover<OrderRow>;
  wakeEndpoints: Wakeup;
  endpoints: EndpointOptions;
  operators: OperatorParts | undefined; // undefined unless debug is enabled
  checks: Checks;
  authenticator: Authenticator;
  log: Log;
}

export function notificationApp(parts: AppParts): OpenAPIHono {
  const { operators, checks, authenticator, log } = parts;
  const app = createApp({
    title: "Kenri notification",
    tags: [
      {
        name: "Orders",
        description: "Hand over sends to the outside, and see how they ended.",
      },
      { name: "Notifications", description: "What users were notified of." },
      { name: "Endpoints", description: "Register urls to which events are sent as webhooks." },
    ],
    errors: statusOfCode,
    checks,
    authenticator,
    log,
  });
  addRoute(app, notificationsRoute, listNotifications(parts.database));
  addOrders(app, parts);
  const { database, sender, endpoints: options, wakeEndpoints, toSend: { wake: wakeOrders } } =
    parts;
  addEndpoints(app, { database, sender, options, wakeEndpoints, wakeOrders });
  if (operators) addOperatorRoutes(app, operators);
  return app;
}

function addOrders(app: OpenAPIHono, { database, sender, toSend }: AppParts): void {
  addCommand(app, commandBatch(database, acceptCommand(), toSend), acceptRoute(sender));
  addRoute(app, orderRoute, findOrder(database));
  addRoute(app, orderByKeyRoute, findOrderByKey(database));
}
