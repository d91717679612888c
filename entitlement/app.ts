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
import { changeCommand, changeRoute, type CommitOptions } from "./change_entitlement.ts";
import { statusOfCode } from "./errors.ts";
import { findEntitlements, listEntitlements, listRoute } from "./list_entitlements.ts";
import { addOperatorRoutes, type OperatorParts } from "./operators/routes.ts";

export interface AppParts {
  database: Database;
  toRelay: Handover<OutboxRow>;
  operators?: OperatorParts | undefined; // without it there are no routes for operators
  checks: Checks;
  authenticator: Authenticator;
  log: Log;
}

const listsPerQuery = 64;
const queriesAtOnce = 2;
// A fraction of a second of work, and about 30 MiB. Beyond that callers should try again later.
const maxWaiting = 1_000;

export function entitlementApp(parts: AppParts, options: CommitOptions): OpenAPIHono {
  const { database, toRelay, operators, checks, authenticator, log } = parts;
  const app = createApp({
    title: "Kenri entitlement",
    tags: [{ name: "Entitlements", description: "Change and list the entitlements of users." }],
    errors: statusOfCode,
    checks,
    authenticator,
    log,
  });
  const changes = commandBatch(database, changeCommand(options), toRelay);
  addCommand(app, changes, changeRoute("GRANT"));
  addCommand(app, changes, changeRoute("REVOKE"));
  const lists = new Batch({
    flush: (userIds: string[]) => findEntitlements(database, userIds),
    maxItems: listsPerQuery,
    maxFlushes: queriesAtOnce,
    maxWaiting,
  });
  addRoute(app, listRoute, listEntitlements(lists));
  if (operators) addOperatorRoutes(app, operators);
  observeBatch("lists", lists);
  return app;
}
