import type { OpenAPIHono } from "@hono/zod-openapi";
import type { Authenticator } from "@kenri/shared/access/authenticator.ts";
import { addConsole } from "@kenri/shared/console/console.tsx";
import { type Samples, workerCounters } from "@kenri/shared/console/samples.ts";
import { flowStage, queueStage, type Stage } from "@kenri/shared/console/stages.tsx";
import { ageOf, count, perSecond } from "@kenri/shared/console/text.ts";
import type { Loop } from "@kenri/shared/process/loop.ts";
import { reconciliationPage, reconciliationPath } from "../reconciliation/page.tsx";
import type { OutboxStatus } from "./status.ts";

// The console of this service: from the request to the stream.

const queue = {
  title: "Outbox",
  about: "Events waiting to be published.",
  noun: "event",
  lateSeconds: 5, // until an event is in the stream, the objective of docs/slo.md
  duringOutageOfNats: "events wait in the outbox",
  waitsForNats: true,
};

const requests = (result?: string) => ({
  name: "entitlement_command_total",
  labels: result === undefined ? {} : { result },
});
const counters = {
  requests: requests(),
  changes: requests("applied"),
  replays: requests("replayed"),
  errors: requests("error"),
  outages: requests("unavailable"),
  ...workerCounters("relay"),
};

export function addEntitlementConsole(
  app: OpenAPIHono,
  authenticator: Authenticator,
  peerUrl: string | undefined,
): Loop {
  return addConsole(app, authenticator, {
    site: { service: "entitlement", peer: "notification", peerUrl },
    searchBy: [
      { by: "user_id", title: "user id" },
      { by: "event_id", title: "event id" },
      { by: "idempotency_key", title: "idempotency key" },
    ],
    layers: { outbox: "Events that could not be published." },
    counters,
    queue,
    stages: stagesOf,
    problems: unreceivedEvents,
    after: "Receives the events and sends notifications.",
    more: [{ path: reconciliationPath, title: "Reconciliation", page: reconciliationPage }],
  });
}

function stagesOf(
  status: OutboxStatus | undefined,
  rates: Samples<keyof typeof counters>,
): Stage[] {
  const failed = sumOf(rates.rate("errors"), rates.rate("outages"));
  const published = status?.last_published_at;
  return [
    flowStage(rates, {
      title: "Requests",
      about: "Grants and revokes that clients ask for.",
      counter: "requests",
      unit: "requests/s",
      trouble: failed ? "failing" : undefined,
      facts: [["repeated", perSecond(rates.rate("replays"))], ["failed", perSecond(failed)]],
    }),
    flowStage(rates, {
      title: "Changes",
      about: "Committed, each with its event.",
      counter: "changes",
      unit: "changes/s",
    }),
    queueStage(queue, status),
    flowStage(rates, {
      title: "Relay",
      about: "Publishes events to the stream, in order.",
      counter: "done",
      unit: "events/s",
      trouble: status?.nats === false ? "NATS down" : undefined,
      facts: [
        ["retries", perSecond(rates.rate("retried"))],
        ["latest", published ? `${ageOf(published)} ago` : "–"],
      ],
    }),
  ];
}

function sumOf(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? undefined : a + b;
}

function unreceivedEvents({ unreceived }: OutboxStatus) {
  if (unreceived === 0) return [];
  return [
    <a href={reconciliationPath}>
      {count(unreceived, "published event has", "published events have")} not been received
    </a>,
  ];
}
