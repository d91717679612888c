import type { OpenAPIHono } from "@hono/zod-openapi";
import type { Authenticator } from "@kenri/shared/access/authenticator.ts";
import { addConsole } from "@kenri/shared/console/console.tsx";
import { type Samples, workerCounters } from "@kenri/shared/console/samples.ts";
import { flowStage, queueStage, type Stage } from "@kenri/shared/console/stages.tsx";
import { perSecond, whole } from "@kenri/shared/console/text.ts";
import type { Loop } from "@kenri/shared/process/loop.ts";
import { inboxPage, inboxPath } from "./inbox_page.tsx";
import type { DeliveryStatus } from "./status.ts";

// The console of this service: from the stream to the user.

const queue = {
  title: "Waiting",
  about: "Notifications waiting to be sent.",
  noun: "notification",
  lateSeconds: 30, // from the change to the send, the objective of docs/slo.md
  duringOutageOfNats: "events wait in the stream",
  waitsForNats: false,
};

const messages = (outcome: string) => ({
  name: "notification_receive_total",
  labels: { outcome },
});
const counters = {
  received: messages("handled"),
  duplicates: messages("duplicate"),
  unreadable: messages("unreadable"),
  ...workerCounters("delivery"),
};

export function addNotificationConsole(
  app: OpenAPIHono,
  authenticator: Authenticator,
  peerUrl: string | undefined,
): Loop {
  return addConsole(app, authenticator, {
    site: { service: "notification", peer: "entitlement", peerUrl },
    searchBy: [{ by: "user_id", title: "user id" }, { by: "event_id", title: "event id" }],
    layers: {
      delivery: "Notifications that could not be sent.",
      advisory: "Messages that JetStream no longer delivers. A copy of each was kept.",
    },
    counters,
    queue,
    stages: stagesOf,
    before: "Commits changes and publishes their events.",
    more: [{ path: inboxPath, title: "Inbox", page: inboxPage }],
  });
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
        ["undelivered", numberOrDash(status?.undelivered)],
        ["unacknowledged", numberOrDash(status?.unacknowledged)],
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
    queueStage(queue, status),
    flowStage(rates, {
      title: "Sent",
      about: "Notifications that the channel accepted.",
      counter: "done",
      unit: "sends/s",
      facts: [["retries", perSecond(rates.rate("retried"))]],
    }),
  ];
}

function streamState(status: DeliveryStatus | undefined): Stage["state"] {
  if (!status) return { tone: "muted", word: "unknown" };
  if (!status.nats) return { tone: "bad", word: "NATS down" };
  const waiting = (status.undelivered ?? 0) + (status.unacknowledged ?? 0);
  return { tone: "good", word: waiting === 0 ? "empty" : "flowing" };
}

function numberOrDash(number: number | null | undefined): string {
  return number === null || number === undefined ? "–" : whole(number);
}
