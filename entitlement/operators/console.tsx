import type { ServiceConsole } from "@kenri/shared/console/console.tsx";
import { type Samples, workerCounters } from "@kenri/shared/console/samples.ts";
import { flowStage, queueStage, type Stage } from "@kenri/shared/console/stages.tsx";
import { ageOf, count, perSecond } from "@kenri/shared/console/text.ts";
import { reconciliationPage, reconciliationPath } from "../reconciliation/page.tsx";
import { looks, outboxQueue, reservationQueue } from "./looks.ts";
import { pointsPage, pointsPath } from "./points/page.tsx";
import type { OutboxStatus } from "./status.ts";

// The console of this service: from the request to the stream.

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
  carriedOut: workerCounters("reservations").done,
};

export const entitlementConsole: ServiceConsole<OutboxStatus, keyof typeof counters> = {
  service: "entitlement",
  looks,
  counters,
  stages: stagesOf,
  problems: unreceivedEvents,
  duringOutageOfNats: "events wait in the outbox",
  after: { title: "Receivers", about: "Other services receive the events." },
  meaningOfSteps: {
    RESERVED: "The reservation was accepted.",
    DUE: "The time of the reservation.",
    PROCESSING: "The reservation is being carried out.",
    DONE: "The reservation was carried out, in the commit of its change.",
    CANCELLED: "The reservation was cancelled before it was carried out.",
    CHANGED: "The change was committed together with its event.",
  },
  toneOfStates: { DONE: "good", CANCELLED: "muted" },
  more: [
    { path: pointsPath, title: "Points", page: pointsPage },
    { path: reconciliationPath, title: "Reconciliation", page: reconciliationPage },
  ],
};

function stagesOf(
  status: OutboxStatus | undefined,
  rates: Samples<keyof typeof counters>,
): Stage[] {
  const failed = sumOf(rates.rate("errors"), rates.rate("outages"));
  const published = status?.last_published_at;
  return [
    flowStage(rates, {
      title: "Requests",
      about: "Changes that clients ask for.",
      counter: "requests",
      unit: "requests/s",
      trouble: failed ? "failing" : undefined,
      facts: [["repeated", perSecond(rates.rate("replays"))], ["failed", perSecond(failed)]],
    }),
    {
      ...queueStage(reservationQueue, status),
      about: "Changes waiting for their time.",
      flow: { unit: "done/s", rate: rates.rate("carriedOut"), rates: rates.rates("carriedOut") },
    },
    flowStage(rates, {
      title: "Changes",
      about: "Committed, each with its event.",
      counter: "changes",
      unit: "changes/s",
    }),
    queueStage(outboxQueue, status),
    flowStage(rates, {
      title: "Relay",
      about: "Publishes events in their order.",
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
