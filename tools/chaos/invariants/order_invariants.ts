// Each event becomes one order for each endpoint that wants it, an order and its ledger end
// together, and receivers get what the ledger says.
import type { Answered } from "./invariants.ts";
import { type IndexedTables, type Invariant, invariant, lineOf } from "./invariant.ts";

/** One request, as a receiver got it. */
export interface Receipt {
  url: string;
  send_id: string;
  at: number; // in milliseconds since 1970
  body: string;
  status: number | undefined; // the answer; undefined when there was none
  isSigned: boolean; // a webhook has a valid signature, and any other request has none
}

type Order = IndexedTables["orders"][0];

export function eventsBecomeOrders(
  { endpoints, eventTypes, ordersOfKey, orders }: IndexedTables,
): Invariant {
  const wanted = new Set(endpoints.flatMap(({ endpoint_id, event_types, user_id }) =>
    eventTypes
      .filter((event) =>
        event_types?.includes(event.type) !== false && (user_id ?? event.user_id) === event.user_id
      )
      .map(({ event_id }) => `${event_id}:${endpoint_id}`)
  ));
  const ofEvents = orders.filter(({ event_id }) => event_id !== null);
  return invariant(
    "11. An event has one order for each endpoint that wants it, and no other",
    [...new Set([...wanted, ...ofEvents.map(({ idempotency_key }) => idempotency_key)])],
    (key) => wanted.has(key) && ordersOfKey.get(key)?.length === 1,
  );
}

export function ordersAreKept({ orderOf }: IndexedTables, answered: Answered[]): Invariant {
  return invariant(
    "11. An acknowledged order exists",
    answered.filter(({ request, answer }) => request.action === "ORDER" && answer.status === 202),
    ({ answer }) => {
      const order = orderOf.get(JSON.parse(answer.body).order_id);
      return order !== undefined && order.event_id === null;
    },
  );
}

export function ordersEndWithTheirLedger({ orders, ledgerOf }: IndexedTables): Invariant {
  return invariant(
    "12. An order is SUCCEEDED or ABORTED if and only if the ledger says so, with the same digest",
    orders,
    ({ idempotency_key, request_digest, status, reason }) => {
      const entry = ledgerOf.get(idempotency_key);
      const isSame = entry?.request_digest === request_digest;
      if (reason === "IDEMPOTENCY_CONFLICT") return status === "ABORTED" && !isSame;
      if (status === "SUCCEEDED") return isSame && entry.status === "SUCCEEDED";
      return status === "ABORTED" && isSame && entry.status === "FAILED";
    },
  );
}

export function ledgerIsOfOrders({ ledger, orderOf }: IndexedTables): Invariant {
  return invariant(
    "12. An entry of the ledger belongs to an order",
    ledger,
    ({ order_id, idempotency_key }) =>
      orderOf.get(order_id ?? "")?.idempotency_key === idempotency_key,
  );
}

const sendOf = ({ url, send_id }: Pick<Receipt, "url" | "send_id">) => `${url} ${send_id}`;

export function isAccepted({ status = 0 }: Pick<Receipt, "status">): boolean {
  return status >= 200 && status < 300;
}

export function whatSucceededWasReceived(
  { orders }: IndexedTables,
  received: Receipt[],
): Invariant {
  const accepted = new Set(received.filter(isAccepted).map(sendOf));
  return invariant(
    "13. A receiver has accepted every order that SUCCEEDED",
    orders.filter(({ status }) => status === "SUCCEEDED"),
    (order) => accepted.has(sendOf(order)),
  );
}

export function receiptsAreOfOrders({ orders }: IndexedTables, received: Receipt[]): Invariant {
  const known = new Set(orders.map(sendOf));
  const bodyOf = new Map(received.toReversed().map((one) => [sendOf(one), one.body]));
  return invariant(
    "13. What a receiver gets belongs to an order: with its id, the same body each time, and signed",
    received,
    (one) => known.has(sendOf(one)) && bodyOf.get(sendOf(one)) === one.body && one.isSigned,
  );
}

/** A version is sent for the first time only when the one before it was accepted, or ended without. */
export function versionsArriveInOrder(
  { orders, endpoints }: IndexedTables,
  received: Receipt[],
): Invariant {
  const [first, accepted] = [new Map<string, number>(), new Map<string, number>()];
  for (const [place, one] of received.entries()) {
    const send = sendOf(one);
    if (!first.has(send)) first.set(send, place);
    if (isAccepted(one) && !accepted.has(send)) accepted.set(send, place);
  }
  const inOrder = new Set(
    endpoints.filter(({ ordering }) => ordering !== "none").map(({ endpoint_id }) => endpoint_id),
  );
  const versions = orders.filter((order) =>
    inOrder.has(order.endpoint_id ?? "") && order.version !== null
  );
  const byPlace = new Map(versions.map((order) => [placeOf(order, order.version), order]));
  return invariant(
    "14. An endpoint gets the versions of an entitlement or balance in their order",
    versions,
    (order) => {
      const before = byPlace.get(placeOf(order, (order.version ?? 0) - 1));
      const at = first.get(sendOf(order));
      if (at === undefined || before?.status !== "SUCCEEDED") return true;
      return (accepted.get(sendOf(before)) ?? Infinity) < at;
    },
  );
}

function placeOf(order: Order, version: number | null): string {
  const { endpoint_id, user_id, stock_keeping_unit } = order;
  const line = { user_id: user_id ?? "", stock_keeping_unit: stock_keeping_unit ?? "" };
  return `${endpoint_id} ${lineOf(line)} ${version}`;
}
