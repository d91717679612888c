import type { OpenAPIHono } from "@hono/zod-openapi";
import type { Authenticator } from "@kenri/shared/access/authenticator.ts";
import { addConsole } from "@kenri/shared/console/console.tsx";
import { Table, When } from "@kenri/shared/console/layout.tsx";
import { deadOf, flowOf, type Stage, waitingState } from "@kenri/shared/console/pipeline.tsx";
import { OtherSide } from "@kenri/shared/console/pipeline_page.tsx";
import type { Samples } from "@kenri/shared/console/samples.ts";
import { age, ageOf, count, perSecond, whole } from "@kenri/shared/console/text.ts";
import { EventLink } from "@kenri/shared/console/timeline_page.tsx";
import type { Loop } from "@kenri/shared/process/loop.ts";
import type { Child } from "hono/jsx";
import type { JSX } from "hono/jsx/jsx-runtime";
import type { OutboxStatus } from "./status.ts";
import { reconciliationPage, reconciliationPath } from "../reconciliation/page.tsx";

// This service's half of the console: from the request to the stream.

const settled = "kenri_worker_settled_total";
const counters = {
  requests: { name: "entitlement_command_total" },
  changes: { name: "entitlement_command_total", labels: { result: "applied" } },
  replays: { name: "entitlement_command_total", labels: { result: "replayed" } },
  errors: { name: "entitlement_command_total", labels: { result: "error" } },
  outages: { name: "entitlement_command_total", labels: { result: "unavailable" } },
  published: { name: settled, labels: { worker: "relay", outcome: "done" } },
  retried: { name: settled, labels: { worker: "relay", outcome: "retry" } },
};
type Rates = Samples<keyof typeof counters>;

export function addEntitlementConsole(
  app: OpenAPIHono,
  authenticator: Authenticator,
  peerUrl: string | undefined,
): Loop {
  return addConsole(app, authenticator, {
    site: { service: "entitlement", other: "notification", peerUrl },
    ways: [
      { by: "user_id", title: "user" },
      { by: "event_id", title: "event" },
      { by: "idempotency_key", title: "idempotency key" },
    ],
    layers: { outbox: "Events that never reached the stream." },
    counters,
    look: (status: OutboxStatus | undefined, rates: Rates) => ({
      stages: stagesOf(status, rates),
      problems: status ? problemsOf(status) : [],
      oldest: <Oldest rows={status?.oldest ?? []} />,
    }),
    after: (site) => <OtherSide site={site} text="Receives what the stream holds, and sends." />,
    more: [{ path: reconciliationPath, title: "Reconciliation", page: reconciliationPage }],
  });
}

// An event should be in the stream within five seconds: the objective of docs/slo.md.
const lateSeconds = 5;

function stagesOf(status: OutboxStatus | undefined, rates: Rates): Stage[] {
  const failed = sumOf(rates.rate("errors"), rates.rate("outages"));
  const connected = status?.nats;
  return [
    {
      name: "requests",
      title: "Requests",
      about: "Grants and revokes that are asked for.",
      state: failed ? { tone: "bad", word: "failing" } : flowOf(rates.rate("requests")),
      flow: { unit: "requests/s", rate: rates.rate("requests"), rates: rates.rates("requests") },
      facts: [
        ["answered again", perSecond(rates.rate("replays"))],
        ["failed", perSecond(failed)],
      ],
    },
    {
      name: "changes",
      title: "Changes",
      about: "Committed, each with its event.",
      state: flowOf(rates.rate("changes")),
      flow: { unit: "changes/s", rate: rates.rate("changes"), rates: rates.rates("changes") },
      facts: [],
    },
    {
      name: "outbox",
      title: "Outbox",
      about: "Events that wait for the stream.",
      state: waitingState(status, lateSeconds),
      facts: [
        ["waiting", status ? whole(status.waiting) : "–"],
        ["the oldest for", age(status?.oldest_waiting_seconds ?? null)],
        ["given up", status ? whole(deadOf(status)) : "–"],
      ],
    },
    {
      name: "relay",
      title: "Relay",
      about: "Publishes to the stream, in order.",
      state: connected === false
        ? { tone: "bad", word: "NATS away" }
        : flowOf(rates.rate("published")),
      flow: { unit: "events/s", rate: rates.rate("published"), rates: rates.rates("published") },
      facts: [
        ["tried again", perSecond(rates.rate("retried"))],
        ["the last", status?.last_published_at ? `${ageOf(status.last_published_at)} ago` : "–"],
      ],
    },
  ];
}

function sumOf(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? undefined : a + b;
}

function problemsOf(status: OutboxStatus): Child[] {
  const { nats, oldest_waiting_seconds: waited, unreceived } = status;
  const dead = deadOf(status);
  return [
    !nats && "NATS can't be reached: events wait in the outbox until it is back.",
    nats && waited !== null && waited > lateSeconds &&
    `An event has waited for ${age(waited)}: see below.`,
    dead > 0 && (
      <a href="/console/dead-letters">{count(dead, "event was", "events were")} given up</a>
    ),
    unreceived > 0 && (
      <a href={reconciliationPath}>
        {count(unreceived, "event is", "events are")} known not to be received
      </a>
    ),
  ].filter((problem) => problem !== false);
}

function Oldest({ rows }: { rows: OutboxStatus["oldest"] }): JSX.Element {
  return (
    <Table
      label="Events that wait longest"
      columns={["Since", "Event", "Of", "State", "Attempts", "Next try", "Error"]}
      rows={rows.map((row) => [
        <When at={row.created_at} />,
        <EventLink id={row.event_id} />,
        row.aggregate_key,
        row.locked_by === null ? row.status : `${row.status} by ${row.locked_by}`,
        row.attempt_count,
        <When at={row.next_retry_at} />,
        row.last_error ?? "–",
      ])}
      none="Nothing waits."
    />
  );
}
