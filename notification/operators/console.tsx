import type { ServiceConsole } from "@kenri/shared/console/console.tsx";
import { type Samples, workerCounters } from "@kenri/shared/console/samples.ts";
import { flowStage, queueStage, type Stage } from "@kenri/shared/console/stages.tsx";
import { count, perSecond, whole } from "@kenri/shared/console/text.ts";
import { inboxPage, inboxPath } from "./inbox_page.tsx";
import { deliveryQueue, looks, orderQueue } from "./looks.ts";
import { endpointsPage } from "./orders/endpoints_page.tsx";
import { endpointsPath, ordersPath, replayPath } from "./orders/links.tsx";
import { ordersPage } from "./orders/orders_page.tsx";
import { replayNow, replayPage } from "./orders/replay_page.tsx";
import type { DeliveryStatus } from "./status.ts";

// The console of this service: from the stream to the user.

const messages = (outcome: string) => ({
  name: "notification_receive_total",
  labels: { outcome },
});
const counters = {
  received: messages("handled"),
  duplicates: messages("duplicate"),
  unreadable: messages("unreadable"),
  ...workerCounters("delivery"),
  ordersSent: workerCounters("orders").done,
};

export const notificationConsole: ServiceConsole<DeliveryStatus, keyof typeof counters> = {
  service: "notification",
  looks,
  counters,
  stages: stagesOf,
  problems: failingEndpoints,
  duringOutageOfNats: "events wait in the stream",
  before: { title: "Publishers", about: "Other services publish events." },
  meaningOfSteps: {
    RECEIVED: "The event was received and stored as a notification.",
    CAPTURED: "JetStream no longer delivers the message. A copy of it was kept as a dead letter.",
    PROCESSING: "The notification is being sent.",
    SENT: "The channel accepted the notification.",
    ORDERED: "The order was accepted, or an endpoint wants the event.",
    SENDING: "The order is being sent.",
    PUT_OFF: "The receiver asked for a pause. This counts no attempt.",
    PROBED: "Sent to find out whether the endpoint can be reached again. This counts no attempt.",
    SUCCEEDED: "The receiver accepted it, and the ledger says so.",
    ABORTED: "Given up without a send.",
    REPLAYED: "Sent again: a replay of the endpoint.",
  },
  toneOfStates: {
    ...{ SENT: "good", NOT_RECEIVED: "bad" },
    ...{ SUCCEEDED: "good", FAILED: "bad", ABORTED: "bad", PARKED: "muted" },
    ...{ ACTIVE: "good", PAUSED: "muted", FAILING: "bad", DISABLED: "bad", GONE: "muted" },
  },
  more: [
    { path: inboxPath, title: "Inbox", page: inboxPage },
    { path: ordersPath, title: "Orders", page: ordersPage },
    { path: endpointsPath, title: "Endpoints", page: endpointsPage },
  ],
  forms: [{ path: replayPath, page: replayPage, send: replayNow }],
};

function failingEndpoints({ orders: { endpoints: { FAILING } } }: DeliveryStatus) {
  if (FAILING === 0) return [];
  return [
    <a href={`${endpointsPath}?state=FAILING`}>{count(FAILING, "endpoint")} can't be reached</a>,
  ];
}

function stagesOf(
  status: DeliveryStatus | undefined,
  rates: Samples<keyof typeof counters>,
): Stage[] {
  return [
    {
      title: "Stream",
      about: "Messages waiting in JetStream.",
      state: streamState(status),
      facts: [
        ["undelivered", numberOrDash(status && undeliveredIn(status))],
        ["unacknowledged", numberOrDash(status && unacknowledgedIn(status))],
      ],
    },
    flowStage(rates, {
      title: "Received",
      about: "Stored once, without duplicates.",
      counter: "received",
      unit: "events/s",
      facts: [
        ["duplicates", perSecond(rates.rate("duplicates"))],
        ["unreadable", perSecond(rates.rate("unreadable"))],
      ],
    }),
    queueStage(deliveryQueue, status),
    flowStage(rates, {
      title: "Sent",
      about: "Notifications that the channel accepted.",
      counter: "done",
      unit: "sends/s",
      facts: [["retries", perSecond(rates.rate("retried"))]],
    }),
    {
      ...queueStage(orderQueue, status),
      about: "Sends to the outside, and webhooks.",
      flow: { unit: "sends/s", rate: rates.rate("ordersSent"), rates: rates.rates("ordersSent") },
    },
  ];
}

function streamState(status: DeliveryStatus | undefined): Stage["state"] {
  if (!status) return { tone: "muted", word: "unknown" };
  if (!status.nats) return { tone: "bad", word: "NATS down" };
  const waiting = (undeliveredIn(status) ?? 0) + (unacknowledgedIn(status) ?? 0);
  return { tone: "good", word: waiting === 0 ? "empty" : "flowing" };
}

const undeliveredIn = (status: DeliveryStatus) =>
  inAll(status.undelivered, status.undelivered_points, status.undelivered_matchmaking);

const unacknowledgedIn = (status: DeliveryStatus) =>
  inAll(status.unacknowledged, status.unacknowledged_points, status.unacknowledged_matchmaking);

// Of all consumers; a peer of an earlier release has only the first.
function inAll(...ofConsumers: (number | null | undefined)[]): number | undefined {
  const known = ofConsumers.filter((count) => typeof count === "number");
  return known.length === 0 ? undefined : known.reduce((sum, count) => sum + count, 0);
}

function numberOrDash(number: number | null | undefined): string {
  return number === null || number === undefined ? "–" : whole(number);
}
