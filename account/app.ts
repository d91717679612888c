import type { OpenAPIHono } from "@hono/zod-openapi";
import type { Authenticator } from "@kenri/shared/access/authenticator.ts";
import { commandBatch } from "@kenri/shared/commands/command.ts";
import { addCommand } from "@kenri/shared/commands/route.ts";
import { createApp } from "@kenri/shared/http/app.ts";
import type { Checks } from "@kenri/shared/http/common_routes.ts";
import { addRoute } from "@kenri/shared/http/route.ts";
import type { OutboxRow } from "@kenri/shared/outbox/outbox_table.ts";
import type { Database } from "@kenri/shared/postgres/postgres.ts";
import type { Log } from "@kenri/shared/process/log.ts";
import type { Handover } from "@kenri/shared/queue/handover.ts";
import { changeCommand } from "./change_account.ts";
import { profileRoute } from "./change_profile.ts";
import { rolesRoute } from "./change_roles.ts";
import { resumeRoute, suspendRoute } from "./change_status.ts";
import { endOfIdentityRoute } from "./end_identity.ts";
import { endAllRoute, endOneRoute } from "./end_sessions.ts";
import { statusOfCode } from "./errors.ts";
import { getUser, userRoute } from "./get_user.ts";
import { auditRoute, listAudit } from "./list_audit.ts";
import { addOperatorRoutes, type OperatorParts } from "./operators/routes.ts";
import { resolveIdentity, resolveRoute } from "./resolve_identity.ts";
import { endedRoute, listEnded, sessionState, stateRoute } from "./sessions.ts";

export interface AppParts {
  database: Database;
  toRelay: Handover<OutboxRow>;
  operators: OperatorParts | undefined; // undefined unless debug is enabled
  checks: Checks;
  authenticator: Authenticator;
  log: Log;
}

export function accountApp(
  { database, toRelay, operators, checks, authenticator, log }: AppParts,
): OpenAPIHono {
  const app = createApp({
    title: "Kenri account",
    tags: [
      { name: "Identities", description: "Who logs in." },
      { name: "Accounts", description: "The accounts of users, their roles and their audit." },
      { name: "Sessions", description: "Which sessions have ended." },
    ],
    errors: statusOfCode,
    checks,
    authenticator,
    log,
  });
  const changes = commandBatch(database, changeCommand, toRelay);
  addRoute(app, resolveRoute, resolveIdentity(database, toRelay.wake));
  addCommand(app, changes, endOfIdentityRoute(database));
  addCommand(app, changes, suspendRoute);
  addCommand(app, changes, resumeRoute);
  addRoute(app, userRoute, getUser(database));
  addCommand(app, changes, profileRoute);
  addCommand(app, changes, rolesRoute);
  addCommand(app, changes, endAllRoute);
  addRoute(app, auditRoute, listAudit(database));
  addRoute(app, endedRoute, listEnded(database));
  addCommand(app, changes, endOneRoute);
  addRoute(app, stateRoute, sessionState(database));
  if (operators) addOperatorRoutes(app, { database, toRelay }, operators);
  return app;
}
