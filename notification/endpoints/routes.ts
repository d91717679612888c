import type { OpenAPIHono } from "@hono/zod-openapi";
import { commandBatch } from "@kenri/shared/commands/command.ts";
import { described } from "@kenri/shared/commands/description.ts";
import { addCommand } from "@kenri/shared/commands/route.ts";
import { addRoute } from "@kenri/shared/http/route.ts";
import type { Database } from "@kenri/shared/postgres/postgres.ts";
import type { Wakeup } from "@kenri/shared/process/signals.ts";
import { Handover } from "@kenri/shared/queue/handover.ts";
import { senderNotConfigured } from "../errors.ts";
import type { Sender } from "../orders/sender_client.ts";
import type { EndpointOptions } from "../orders/settings.ts";
import { changeCommand, changeRoute } from "./change_endpoint.ts";
import { deleteRoute, stateCommand, stateRoute } from "./change_state.ts";
import { createCommand, createRoute } from "./create_endpoint.ts";
import { endpointRoute, findEndpoint } from "./endpoint.ts";
import { attemptsRoute, listAttempts } from "./list_attempts.ts";
import { endpointsRoute, listEndpoints } from "./list_endpoints.ts";
import { replayCommand, replayRoute } from "./replay.ts";
import { rotateCommand, rotateRoute } from "./rotate_secret.ts";
import { testCommand, testRoute } from "./test_endpoint.ts";

export interface EndpointParts {
  database: Database;
  wakeEndpoints: Wakeup;
  wakeOrders: Wakeup;
  options: EndpointOptions;
  sender: Sender | undefined;
}

export function addEndpoints(app: OpenAPIHono, parts: EndpointParts): void {
  const { options, sender } = parts;
  if (sender && options.secretKeys) addAll(app, parts, options.secretKeys);
  else refuseAll(app, options);
}

const looks = [
  { route: endpointsRoute, look: listEndpoints },
  { route: endpointRoute, look: findEndpoint },
  { route: attemptsRoute, look: listAttempts },
];

function addAll(app: OpenAPIHono, parts: EndpointParts, secretKeys: Uint8Array[]): void {
  const { database, wakeEndpoints, wakeOrders, options, sender } = parts;
  const created = commandBatch(database, createCommand(options, secretKeys));
  addCommand(app, created, createRoute(options, sender));
  addCommand(app, commandBatch(database, changeCommand), changeRoute(options, sender));
  const states = commandBatch(database, stateCommand, new Handover(wakeEndpoints));
  for (const route of stateRoutes) addCommand(app, states, route);
  addCommand(app, commandBatch(database, rotateCommand(secretKeys)), rotateRoute);
  addCommand(app, commandBatch(database, testCommand, new Handover(wakeOrders)), testRoute);
  addCommand(app, commandBatch(database, replayCommand, new Handover(wakeOrders)), replayRoute);
  for (const { route, look } of looks) addRoute(app, route, look(database));
}

const stateRoutes = [stateRoute("PAUSE"), stateRoute("RESUME"), deleteRoute];

// The description of the service is the same as with a sender.
function refuseAll(app: OpenAPIHono, options: EndpointOptions): void {
  const routes = [
    described(createRoute(options, undefined)),
    described(changeRoute(options, undefined)),
    ...stateRoutes.map(described),
    described(rotateRoute),
    described(testRoute),
    described(replayRoute),
    ...looks.map(({ route }) => route),
  ];
  for (const route of routes) {
    addRoute(app, route, () => {
      throw senderNotConfigured();
    });
  }
}
