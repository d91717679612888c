import { z } from "@hono/zod-openapi";
import { type Answer, type Decision, keyConflict } from "@kenri/shared/commands/answer.ts";
import type { Command } from "@kenri/shared/commands/command.ts";
import type { CommandRoute, Sender as Caller } from "@kenri/shared/commands/route.ts";
import { storedKeyOf } from "@kenri/shared/commands/stored_answers.ts";
import { ApiError } from "@kenri/shared/http/errors.ts";
import { instantSchema } from "@kenri/shared/http/instant.ts";
import { sha256 } from "@kenri/shared/process/sha256.ts";
import { withoutEndpoint } from "../endpoints/endpoint.ts";
import { urlSchema } from "../endpoints/fields.ts";
import { notFound } from "../endpoints/on_endpoint.ts";
import { senderNotConfigured } from "../errors.ts";
import { canonicalJson, depthOf, mostDepth } from "@kenri/shared/http/canonical_json.ts";
import { exampleId } from "./order.ts";
import type { OrderRow } from "./orders.ts";
import { requirePublic } from "./require_public.ts";
import type { Sender } from "./sender_client.ts";
import { type Accepted, findSituations, type Situation, storeOrders } from "./store_orders.ts";

// An order is accepted. Its row and the ledger decide that each key is one order, for as long as the
// ledger is kept.

export interface Order extends Caller {
  url: string | null;
  endpointId: string | null;
  request: string; // JSON, as it is stored
  digest: string;
  expiresAt: string | null;
}

const isGiven = (value: unknown) => value !== undefined && value !== null;

const schema = z.object({
  adapter: z.literal("http", 'must be "http"'),
  url: urlSchema().nullish().openapi({ description: "Where to send the payload" }),
  endpoint_id: z.guid("must be the id of an endpoint").nullish().openapi({
    description: "An endpoint of the caller, in place of a url",
  }),
  payload: z.unknown().refine((value) => value !== undefined, "is required")
    .refine(
      (value) => depthOf(value) <= mostDepth,
      `must not be nested deeper than ${mostDepth} levels`,
    ).openapi({ type: "object", description: "Any JSON value; it is the body of the request" }),
  expires_at: instantSchema(
    "RFC 3339 with an offset. Once this time has passed, the order is not sent any more",
  ).nullish(),
}).superRefine(({ url, endpoint_id }, context) => {
  if (isGiven(url) !== isGiven(endpoint_id)) return;
  context.addIssue({
    code: "custom",
    path: ["url"],
    message: "or endpoint_id is required, and not both",
  });
}).openapi("OrderRequest");

type Fields = z.infer<typeof schema>;

export function acceptRoute(sender: Sender | undefined): CommandRoute<Fields, Order> {
  return {
    route: {
      method: "post",
      path: "/v1/orders",
      scope: "orders:write",
      operationId: "giveOrder",
      tags: ["Orders"],
      summary: "Hand over a send to the outside",
      description:
        "The order is made once in effect, and how it ended is on record. The receiver gets the same " +
        "`Idempotency-Key`, the order_id, with each attempt; an endpoint gets a signed webhook.",
      responses: {
        202: {
          description: "The order is accepted. Its status is that of this moment",
          content: {
            "application/json": {
              schema: z.object({ order_id: z.uuid(), status: z.literal("PENDING") })
                .openapi("AcceptedOrder"),
              example: { order_id: exampleId, status: "PENDING" },
            },
          },
        },
        404: withoutEndpoint[404],
      },
    },
    key: {
      advice: "the id of what caused the send is a good key",
      example: "payout-1",
      keptFor: "400 days, or what the settings say",
    },
    body: {
      schema: schema as never,
      example: { adapter: "http", url: "https://example.com/hook", payload: { amount: 100 } },
    },
    toInput: async (fields, caller) => {
      if (!sender) throw senderNotConfigured();
      if (fanOutKey.test(caller.idempotencyKey)) {
        throw new ApiError("BAD_REQUEST", "Idempotency-Key must not be two uuids with a colon");
      }
      const order = orderOf(fields, caller);
      if (order.url !== null) await requirePublic(sender, order.url);
      return order;
    },
  };
}

// The keys of orders that were fanned out from events.
const fanOutKey = /^[0-9a-f-]{36}:[0-9a-f-]{36}$/i;

function orderOf(
  { adapter, url, endpoint_id, payload, expires_at }: Fields,
  caller: Caller,
): Order {
  if (isGiven(expires_at) && Date.parse(`${expires_at}`) <= Date.now()) {
    throw new ApiError("BAD_REQUEST", "expires_at must be in the future");
  }
  const where = isGiven(url) ? { url } : { endpoint_id: endpoint_id?.toLowerCase() };
  const request = { adapter, ...where, payload };
  const expires = isGiven(expires_at) ? { expires_at } : {};
  return {
    ...caller,
    url: url ?? null,
    endpointId: endpoint_id?.toLowerCase() ?? null,
    request: JSON.stringify(request),
    digest: sha256(canonicalJson({ ...request, ...expires })),
    expiresAt: expires_at ?? null,
  };
}

export function acceptCommand(): Command<Order, Situation, Accepted, OrderRow> {
  return {
    name: "orders",
    answerTtlMs: 0, // none is stored
    identityOf: () => undefined,
    locksOf: (order) => [JSON.stringify(["order", storedKeyOf(order)])],
    find: findSituations,
    decide,
    apply: { order: storeOrders },
  };
}

function decide(order: Order, { id, known, endpoint }: Situation): Decision<Accepted> {
  if (known) {
    const answer = known.digest === order.digest ? accepted(known.id, "replayed") : keyConflict;
    return { answer, effects: [] };
  }
  if (order.endpointId !== null && !endpoint) return { answer: notFound, effects: [] };
  return {
    answer: accepted(id, "applied"),
    effects: [{ kind: "order", id, order, endpoint }],
  };
}

// A repeated request gets these bytes again, whatever has become of the order.
function accepted(order_id: string, outcome: "applied" | "replayed"): Answer {
  return { status: 202, body: JSON.stringify({ order_id, status: "PENDING" }), outcome };
}
