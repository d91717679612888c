import type { OpenAPIHono } from "@hono/zod-openapi";
import { addRoute } from "@kenri/shared/http/route.ts";
import { addDeadLetterRoutes } from "@kenri/shared/operators/routes.ts";
import { deadEntries, operationsInStreams } from "@kenri/shared/outbox/stream/dead_entries.ts";
import type { Wakeup } from "@kenri/shared/process/signals.ts";
import { eraseRoute, eraseUser } from "./erase_user.ts";
import { findTicket, ticketRoute } from "./find_ticket.ts";
import { status, statusRoute } from "./status.ts";
import type { Stored } from "./stored.ts";
import { eventsRoute, timeline } from "./timeline.ts";

export interface OperatorParts {
  stored: Stored;
  wakeRelay: Wakeup;
  natsIsAvailable: () => boolean;
}

export function addOperatorRoutes(
  app: OpenAPIHono,
  { stored, wakeRelay: wake, natsIsAvailable }: OperatorParts,
): void {
  const layers = [deadEntries({ ...stored, layer: "matchmaking", wake })];
  addRoute(app, statusRoute, status(stored, layers, natsIsAvailable));
  addRoute(app, eventsRoute, timeline(stored));
  addRoute(app, ticketRoute, findTicket(stored));
  addDeadLetterRoutes(app, "matchmaking", operationsInStreams(stored), layers);
  addRoute(app, eraseRoute, eraseUser(stored));
}
