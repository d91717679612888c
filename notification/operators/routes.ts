import type { OpenAPIHono } from "@hono/zod-openapi";
import { addRoute } from "@kenri/shared/http/route.ts";
import { eraseUserRoute } from "@kenri/shared/operators/erasure.ts";
import type { NatsLink } from "@kenri/shared/nats/link.ts";
import { addDeadLetterRoutes } from "@kenri/shared/operators/routes.ts";
import { type AdvisoryParts, deadAdvisories } from "../dead_letters/dead_advisories.ts";
import { deadDeliveries } from "../dead_letters/dead_deliveries.ts";
import type { ConsumerName } from "../backlog.ts";
import { status, statusRoute } from "./status.ts";
import { eraseUser } from "./erase_user.ts";
import { inbox, inboxRoute } from "./inbox.ts";
import { eventsRoute, timeline } from "./timeline.ts";

export interface OperatorParts extends AdvisoryParts {
  link: NatsLink;
  consumer: ConsumerName;
}

export function addOperatorRoutes(app: OpenAPIHono, parts: OperatorParts): void {
  const { database, wakeDelivery, link, consumer } = parts;
  const tables = [deadDeliveries(database, wakeDelivery), deadAdvisories(parts)];
  addRoute(app, inboxRoute, inbox(database));
  addRoute(app, statusRoute, status(database, tables, link, consumer));
  addRoute(app, eventsRoute, timeline(database));
  addDeadLetterRoutes(app, "notification", database, tables);
  addRoute(app, eraseUserRoute("notification"), eraseUser(database));
}
