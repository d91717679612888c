import type { OpenAPIHono } from "@hono/zod-openapi";
import { addRoute } from "@kenri/shared/http/route.ts";
import { eraseUserRoute } from "@kenri/shared/operators/erasure.ts";
import type { Database } from "@kenri/shared/postgres/postgres.ts";
import { operationsIn } from "@kenri/shared/operators/operation_log.ts";
import { addDeadLetterRoutes } from "@kenri/shared/operators/routes.ts";
import type { Wakeup } from "@kenri/shared/process/signals.ts";
import { deadEvents } from "./dead_events.ts";
import { deadReservations } from "./dead_reservations.ts";
import { pointsOfUser, pointsOfUserRoute } from "./points/points_of_user.ts";
import { upcoming, upcomingRoute } from "./points/upcoming.ts";
import { verifyPoints, verifyPointsRoute } from "./points/verify.ts";
import { status, statusRoute } from "./status.ts";
import { eraseUser } from "./erase_user.ts";
import type { AskReceiver } from "../reconciliation/ask.ts";
import {
  reconcileNow,
  reconcileRoute,
  reconciliation,
  reconciliationRoute,
} from "../reconciliation/on_demand.ts";
import { replay, replayRoute } from "./replay.ts";
import { strayRows, strayRowsRoute } from "../audit/stray_rows.ts";
import { eventsRoute, timeline } from "./timeline.ts";
import { verifyAudit, verifyAuditRoute } from "../audit/verify.ts";

export interface OperatorParts {
  database: Database;
  wakeRelay: Wakeup;
  wakeReservations: Wakeup;
  ask: AskReceiver;
  graceSeconds: number;
  natsIsAvailable: () => boolean;
}

export function addOperatorRoutes(app: OpenAPIHono, parts: OperatorParts): void {
  const { database, wakeRelay, wakeReservations, natsIsAvailable } = parts;
  const tables = [
    deadEvents(database, wakeRelay),
    deadReservations(database, wakeReservations),
  ];
  addRoute(app, statusRoute, status(database, tables, natsIsAvailable));
  addRoute(app, eventsRoute, timeline(database));
  addDeadLetterRoutes(app, "entitlement", operationsIn(database), tables);
  addRoute(app, reconciliationRoute, reconciliation(database));
  addRoute(app, verifyAuditRoute, verifyAudit(database));
  addRoute(app, strayRowsRoute, strayRows(database));
  addRoute(app, upcomingRoute, upcoming(database));
  addRoute(app, pointsOfUserRoute, pointsOfUser(database));
  addRoute(app, verifyPointsRoute, verifyPoints(database));
  addRoute(app, replayRoute, replay(database, wakeRelay));
  addRoute(app, reconcileRoute, reconcileNow(parts));
  addRoute(app, eraseUserRoute("entitlement"), eraseUser(parts));
}
