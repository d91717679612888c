import type { OutboxRow } from "@kenri/shared/outbox/outbox_table.ts";
import type { OpenAPIHono } from "@hono/zod-openapi";
import type { Authenticator } from "@kenri/shared/access/authenticator.ts";
import { commandBatch } from "@kenri/shared/commands/command.ts";
import { addCommand } from "@kenri/shared/commands/route.ts";
import { Batch } from "@kenri/shared/queue/batch.ts";
import { createApp } from "@kenri/shared/http/app.ts";
import type { Checks } from "@kenri/shared/http/common_routes.ts";
import { addRoute } from "@kenri/shared/http/route.ts";
import type { Handover } from "@kenri/shared/queue/handover.ts";
import type { Log } from "@kenri/shared/process/log.ts";
import type { Database } from "@kenri/shared/postgres/postgres.ts";
import { observeBatch } from "@kenri/shared/queue/batch_metrics.ts";
import { changeCommand, changeRoute } from "./change_entitlement.ts";
import type { Config } from "./config.ts";
import { statusOfCode } from "./errors.ts";
import { findEntitlements, listEntitlements, listRoute } from "./list_entitlements.ts";
import { addOperatorRoutes, type OperatorParts } from "./operators/routes.ts";
import { cancelCommand, cancelRoute } from "./points/cancel_reservation.ts";
import { pointsCommand, pointsRoute } from "./points/change_points.ts";
import { balancesRoute, listBalances } from "./points/list_balances.ts";
import { listReservations, reservationsRoute } from "./points/list_reservations.ts";
import { listTransactions, transactionsRoute } from "./points/list_transactions.ts";
import {
  findReservation,
  pointsFamily,
  reservationRoute,
  rightsFamily,
} from "./points/reservation.ts";
import type { ReservationRow } from "./points/reservations.ts";
import { reserveCommand, reservePointsRoute, reserveRightRoute } from "./points/reserve.ts";

export interface AppParts {
  database: Database;
  toRelay: Handover<OutboxRow>;
  toCarryOut: Handover<ReservationRow>;
  operators?: OperatorParts | undefined; // without it there are no routes for operators
  checks: Checks;
  authenticator: Authenticator;
  log: Log;
}

const listsPerQuery = 16;
const queriesAtOnce = 4;
// A fraction of a second of work, and about 30 MiB. Beyond that callers should try again later.
const maxWaiting = 1_000;

interface Options extends Pick<Config, "commit" | "points"> {
  reservations: Pick<Config["reservations"], "pollIntervalMs" | "maxAheadMs">;
}

export function entitlementApp(parts: AppParts, options: Options): OpenAPIHono {
  const { database, toRelay, operators, checks, authenticator, log } = parts;
  const app = createApp({
    title: "Kenri entitlement",
    tags: [
      {
        name: "Entitlements",
        description: "Change, reserve and list the entitlements of users.",
      },
      { name: "Points", description: "Grant, spend, reserve and list the points of users." },
    ],
    errors: statusOfCode,
    checks,
    authenticator,
    log,
  });
  const changes = commandBatch(database, changeCommand(options.commit), toRelay);
  addCommand(app, changes, changeRoute("GRANT"));
  addCommand(app, changes, changeRoute("REVOKE"));
  const lists = new Batch({
    flush: (userIds: string[]) => findEntitlements(database, userIds),
    maxItems: listsPerQuery,
    maxFlushes: queriesAtOnce,
    maxWaiting,
  });
  addRoute(app, listRoute, listEntitlements(lists));
  addPoints(app, parts, options);
  if (operators) addOperatorRoutes(app, operators);
  observeBatch("lists", lists);
  return app;
}

function addPoints(
  app: OpenAPIHono,
  { database, toRelay, toCarryOut }: AppParts,
  { commit, points, reservations }: Options,
): void {
  const { idempotencyTtlMs } = commit;
  const changes = commandBatch(database, pointsCommand({ ...points, idempotencyTtlMs }), toRelay);
  addCommand(app, changes, pointsRoute("GRANT", points));
  addCommand(app, changes, pointsRoute("SPEND", points));
  const reserve = reserveCommand({ ...reservations, idempotencyTtlMs });
  const accepted = commandBatch(database, reserve, toCarryOut);
  const options = { ...points, ...reservations };
  addCommand(app, accepted, reservePointsRoute(options));
  addCommand(app, accepted, reserveRightRoute(options));
  const cancelled = commandBatch(database, cancelCommand);
  for (const family of [pointsFamily, rightsFamily]) {
    addRoute(app, reservationRoute(family), findReservation(database, family));
    addCommand(app, cancelled, cancelRoute(family));
  }
  addRoute(app, balancesRoute, listBalances(database));
  addRoute(app, transactionsRoute, listTransactions(database));
  addRoute(app, reservationsRoute, listReservations(database));
}
