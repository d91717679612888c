import { z } from "@hono/zod-openapi";
import type { Decision } from "@kenri/shared/commands/answer.ts";
import type { Command } from "@kenri/shared/commands/command.ts";
import type { CommandRoute } from "@kenri/shared/commands/route.ts";
import type { Transaction } from "@kenri/shared/postgres/postgres.ts";
import { sha256 } from "@kenri/shared/process/sha256.ts";
import { uuidv7 } from "@kenri/shared/process/uuid.ts";
import { canonicalJson } from "@kenri/shared/http/canonical_json.ts";
import { exampleId } from "../orders/order.ts";
import type { OrderRow } from "../orders/orders.ts";
import { type Accepted, storeOrders } from "../orders/store_orders.ts";
import { endpointPath, tag, withoutEndpoint } from "./endpoint.ts";
import {
  type Found,
  identityOf,
  key,
  lockEndpoints,
  notFound,
  ofOneEndpoint,
  type OnEndpoint,
  onEndpoint,
  stateConflict,
} from "./on_endpoint.ts";

// A caller tries out an endpoint: it gets a webhook that is about no event.

export const testType = "EndpointTest";

interface Situation extends Found {
  orderId: string;
}

export const testRoute: CommandRoute<undefined, OnEndpoint> = {
  route: {
    method: "post",
    path: "/v1/endpoints/{endpoint_id}/test",
    scope: "endpoints:write",
    operationId: "testEndpoint",
    tags: [tag],
    summary: "Send a test to an endpoint",
    description:
      `It gets a webhook with the type ${testType}, which is an order like any other. The attempts of ` +
      "the endpoint show how it was answered.",
    request: { params: endpointPath },
    responses: {
      202: {
        description: "The order that was made",
        content: {
          "application/json": {
            schema: z.object({ order_id: z.uuid(), status: z.enum(["PENDING", "PARKED"]) })
              .openapi("EndpointTest"),
            example: { order_id: exampleId, status: "PENDING" as const },
          },
        },
      },
      ...withoutEndpoint,
    },
  },
  key,
  refusals: {
    description: "The endpoint is not ACTIVE, so nothing is sent to it",
    messages: { ENDPOINT_STATE_CONFLICT: "the endpoint is PAUSED" },
  },
  toInput: (_, caller, req) => onEndpoint(caller, req),
};

export const testCommand: Command<OnEndpoint, Situation, Accepted, OrderRow> = {
  ...ofOneEndpoint,
  name: "endpoint_tests",
  identityOf: (test) => identityOf(test, ["TEST ENDPOINT", test.id]),
  find: findSituations,
  decide,
  apply: { order: storeOrders },
};

async function findSituations(tx: Transaction, tests: OnEndpoint[]): Promise<Situation[]> {
  const found = await lockEndpoints(tx, tests);
  return found.map((row) => ({ ...row, orderId: uuidv7() }));
}

// No request may have a key of this form, so the order is not in the way of others.
function decide(test: OnEndpoint, { now, found, orderId }: Situation): Decision<Accepted> {
  if (!found) return { answer: notFound, effects: [] };
  if (found.state !== "ACTIVE") {
    return { answer: stateConflict(`the endpoint is ${found.state}`), effects: [] };
  }
  const payload = { type: testType, timestamp: now, data: { endpoint_id: test.id } };
  const request = { adapter: "http", endpoint_id: test.id, payload };
  const order = {
    ...test,
    idempotencyKey: `${orderId}:${test.id}`,
    url: null,
    endpointId: test.id,
    request: JSON.stringify(request),
    digest: sha256(canonicalJson(request)),
    expiresAt: null,
  };
  const endpoint = { ordering: found.ordering, parks: found.is_draining };
  const body = { order_id: orderId, status: found.is_draining ? "PARKED" : "PENDING" };
  return {
    answer: { status: 202, body: JSON.stringify(body), outcome: "applied" },
    effects: [{ kind: "order", id: orderId, order, endpoint }],
  };
}
