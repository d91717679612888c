import type { OpenAPIHono } from "@hono/zod-openapi";
import type { Authenticator } from "@kenri/shared/access/authenticator.ts";
import { createApp } from "@kenri/shared/http/app.ts";
import type { Checks } from "@kenri/shared/http/common_routes.ts";
import { addRoute } from "@kenri/shared/http/route.ts";
import type { Log } from "@kenri/shared/process/log.ts";
import type { MakeChange } from "@kenri/shared/redis/confirmed.ts";
import type { RedisLink } from "@kenri/shared/redis/redis_link.ts";
import { cancel, cancelRoute } from "./cancel.ts";
import type { Changes } from "./changes.ts";
import { statusOfCode } from "./errors.ts";
import { getRoute, getTicket } from "./get_ticket.ts";
import { join, joinRoute, type TicketRules } from "./join.ts";
import type { Rings } from "./match_tickets.ts";
import { addOperatorRoutes, type OperatorParts } from "./operators/routes.ts";

export interface AppParts {
  redis: RedisLink;
  change: MakeChange;
  changes: Changes;
  rings: Rings;
  modes: readonly string[];
  rules: TicketRules;
  operators: OperatorParts | undefined; // undefined unless debug is enabled
  checks: Checks;
  authenticator: Authenticator;
  log: Log;
}

export function matchmakingApp(
  { operators, checks, authenticator, log, ...parts }: AppParts,
): OpenAPIHono {
  const app = createApp({
    title: "Kenri matchmaking",
    tags: [{ name: "Tickets", description: "Users who wait for a match." }],
    errors: statusOfCode,
    checks,
    authenticator,
    log,
  });
  addRoute(app, joinRoute, join(parts));
  addRoute(app, getRoute, getTicket(parts));
  addRoute(app, cancelRoute, cancel(parts));
  if (operators) addOperatorRoutes(app, operators);
  return app;
}
