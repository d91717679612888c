// Orders of the quiet run whose tables invariants_test.ts damages, and the damage.
import assert from "node:assert/strict";
import type { Receipt } from "../../tools/chaos/invariants/order_invariants.ts";
import { type ServiceProcess, startService } from "../../tools/servers/service_process.ts";
import { createEndpoint, orderSettings, senderSettings } from "../support/orders.ts";
import { type Received, startReceiver, verified } from "../support/receiver.ts";
import { type Harm, last } from "./points_world.ts";

export interface Outside extends AsyncDisposable {
  url: string; // for plain orders
  settings: Record<string, string>;
  /** Makes an endpoint for all events. */
  register(notification: ServiceProcess): Promise<void>;
  received(): Receipt[];
}

/** A receiver, and the sender that reaches it. */
export async function openOutside(): Promise<Outside> {
  await using opened = new AsyncDisposableStack();
  const receiver = opened.use(await startReceiver());
  const sender = opened.use(await startService("sender", senderSettings));
  const closing = opened.move();
  let secret = "";
  const isSigned = (request: Received) => {
    if (!request.headers.has("webhook-id")) return !request.headers.has("webhook-signature");
    return verified(request, secret) !== undefined;
  };
  return {
    url: `${receiver.url}/plain`,
    settings: orderSettings(sender),
    register: async (notification) => {
      const { status, json } = await createEndpoint(notification, { url: `${receiver.url}/hook` });
      assert.equal(status, 201);
      secret = json.secret;
    },
    received: () =>
      receiver.received.map((request) => ({
        url: receiver.url + request.path,
        send_id: request.headers.get("webhook-id") ?? request.headers.get("idempotency-key") ?? "",
        ...{ at: request.at, body: request.body, status: 200, isSigned: isSigned(request) },
      })),
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  };
}

export const harmsToOrders: Record<string, Harm> = {
  "an event has no order": { to: 11, does: ({ tables }) => void tables.orders.shift() },
  "an event has two orders": {
    to: 11,
    does: ({ tables }) => tables.orders.push(ofEvent(tables.orders)),
  },
  "an accepted order is lost": {
    to: 11,
    does: ({ tables }) => tables.orders = tables.orders.filter(({ event_id }) => event_id !== null),
  },
  "an order has no entry in the ledger": { to: 12, does: ({ tables }) => void tables.ledger.pop() },
  "the ledger has another digest": {
    to: 12,
    does: ({ tables }) => last(tables.ledger).request_digest = "no",
  },
  "an order that SUCCEEDED waits again": {
    to: 12,
    does: ({ tables }) => last(tables.orders).status = "PENDING",
  },
  "the ledger has an entry of nothing": {
    to: 12,
    does: ({ tables }) => last(tables.ledger).order_id = "no",
  },
  "no receiver got an order": { to: 13, does: ({ received }) => void received.pop() },
  "a receiver refused an order that SUCCEEDED": {
    to: 13,
    does: ({ received }) => last(received).status = 503,
  },
  "a webhook has no valid signature": {
    to: 13,
    does: ({ received }) => last(received).isSigned = false,
  },
  "a receiver gets something of no order": {
    to: 13,
    does: ({ received }) => received.push({ ...last(received), send_id: "no" }),
  },
  "a receiver gets versions out of order": {
    to: 14,
    does: ({ received }) => received.reverse(),
  },
  "an order that ended is leased": {
    to: 5,
    does: ({ tables }) => last(tables.orders).leased = true,
  },
};

const ofEvent = <Order extends { event_id: string | null }>(orders: Order[]) =>
  last(orders.filter(({ event_id }) => event_id !== null));
