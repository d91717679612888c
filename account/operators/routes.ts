import type { OpenAPIHono } from "@hono/zod-openapi";
import { addRoute } from "@kenri/shared/http/route.ts";
import { operationsIn } from "@kenri/shared/operators/operation_log.ts";
import { addDeadLetterRoutes } from "@kenri/shared/operators/routes.ts";
import type { OutboxRow } from "@kenri/shared/outbox/outbox_table.ts";
import type { Database } from "@kenri/shared/postgres/postgres.ts";
import type { Handover } from "@kenri/shared/queue/handover.ts";
import { addChangeRoutes } from "./change_accounts.ts";
import { deadEvents } from "./dead_events.ts";
import { eraseRoute, eraseUser } from "./erase_user.ts";
import { findAccounts, findRoute } from "./find_accounts.ts";
import { status, statusRoute } from "./status.ts";
import { eventsRoute, timeline } from "./timeline.ts";

export interface OperatorParts {
  natsIsAvailable: () => boolean;
}

export function addOperatorRoutes(
  app: OpenAPIHono,
  { database, toRelay }: { database: Database; toRelay: Handover<OutboxRow> },
  { natsIsAvailable }: OperatorParts,
): void {
  const tables = [deadEvents(database, toRelay.wake)];
  addRoute(app, statusRoute, status(database, tables, natsIsAvailable));
  addRoute(app, eventsRoute, timeline(database));
  addRoute(app, findRoute, findAccounts(database));
  addDeadLetterRoutes(app, "account", operationsIn(database), tables);
  addChangeRoutes(app, database, toRelay);
  addRoute(app, eraseRoute, eraseUser(database, toRelay.wake));
}
