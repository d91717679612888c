import type { OpenAPIHono } from "@hono/zod-openapi";
import type { Authenticator } from "@kenri/shared/access/authenticator.ts";
import { addConsole } from "@kenri/shared/console/console.tsx";
import { Table, When } from "@kenri/shared/console/layout.tsx";
import { deadOf, flowOf, type Stage, waitingState } from "@kenri/shared/console/pipeline.tsx";
import { OtherSide } from "@kenri/shared/console/pipeline_page.tsx";
import type { Samples } from "@kenri/shared/console/samples.ts";
import { age, count, perSecond, whole } from "@kenri/shared/console/text.ts";
import { EventLink } from "@kenri/shared/console/timeline_page.tsx";
import type { Loop } from "@kenri/shared/process/loop.ts";
import type { Child } from "hono/jsx";
import type { JSX } from "hono/jsx/jsx-runtime";
import type { DeliveryStatus } from "./status.ts";
import { inboxPage, inboxPath } from "./inbox_page.tsx";

// This service's half of the console: from the stream to the user.

const settled = "kenri_worker_settled_total";
const counters = {
  received: { name: "notification_receive_total", labels: { outcome: "handled" } },
  duplicates: { name: "notification_receive_total", labels: { outcome: "duplicate" } },
  refused: { name: "notification_receive_total", labels: { outcome: "unreadable" } },
  sent: { name: settled, labels: { worker: "delivery", outcome: "done" } },
  retried: { name: settled, labels: { worker: "delivery", outcome: "retry" } },
};
type Rates = Samples<keyof typeof counters>;

export function addNotificationConsole(
  app: OpenAPIHono,
  authenticator: Authenticator,
  peerUrl: string | undefined,
): Loop {
  return addConsole(app, authenticator, {
    site: { service: "notification", other: "entitlement", peerUrl },
    ways: [{ by: "user_id", title: "user" }, { by: "event_id", title: "event" }],
    layers: {
      delivery: "Notifications whose user was not told.",
      advisory: "Messages that JetStream gave up; a copy of each was kept.",
    },
    counters,
    look: (status: DeliveryStatus | undefined, rates: Rates) => ({
      stages: stagesOf(status, rates),
      problems: status ? problemsOf(status) : [],
      oldest: <Oldest rows={status?.oldest ?? []} />,
    }),
    before: (site) => <OtherSide site={site} text="Commits changes and publishes their events." />,
    more: [{ path: inboxPath, title: "Inbox", page: inboxPage }],
  });
}

// From the change to the send it should take less than thirty seconds: the objective of docs/slo.md.
const lateSeconds = 30;

function stagesOf(status: DeliveryStatus | undefined, rates: Rates): Stage[] {
  return [
    {
      name: "stream",
      title: "Stream",
      about: "Messages that JetStream holds.",
      state: streamState(status),
      facts: [
        ["not given out", numberOf(status?.undelivered)],
        ["not acknowledged", numberOf(status?.unacknowledged)],
      ],
    },
    {
      name: "received",
      title: "Received",
      about: "Stored, each event once.",
      state: flowOf(rates.rate("received")),
      flow: { unit: "events/s", rate: rates.rate("received"), rates: rates.rates("received") },
      facts: [
        ["duplicates", perSecond(rates.rate("duplicates"))],
        ["unreadable", perSecond(rates.rate("refused"))],
      ],
    },
    {
      name: "waiting",
      title: "Waiting",
      about: "Notifications that are to be sent.",
      state: waitingState(status, lateSeconds),
      facts: [
        ["waiting", numberOf(status?.waiting)],
        ["the oldest for", age(status?.oldest_waiting_seconds ?? null)],
        ["given up", numberOf(status && deadOf(status))],
      ],
    },
    {
      name: "sent",
      title: "Sent",
      about: "Taken by the channel.",
      state: flowOf(rates.rate("sent")),
      flow: { unit: "sends/s", rate: rates.rate("sent"), rates: rates.rates("sent") },
      facts: [["tried again", perSecond(rates.rate("retried"))]],
    },
  ];
}

function numberOf(number: number | null | undefined): string {
  return number === null || number === undefined ? "–" : whole(number);
}

function streamState(status: DeliveryStatus | undefined): Stage["state"] {
  if (!status) return { tone: "muted", word: "not known" };
  if (!status.nats) return { tone: "bad", word: "NATS away" };
  const waiting = (status.undelivered ?? 0) + (status.unacknowledged ?? 0);
  return waiting === 0 ? { tone: "good", word: "empty" } : { tone: "good", word: "flowing" };
}

function problemsOf(status: DeliveryStatus): Child[] {
  const { nats, oldest_waiting_seconds: waited } = status;
  const dead = deadOf(status);
  return [
    !nats && "NATS can't be reached: events wait in the stream until it is back.",
    waited !== null && waited > lateSeconds &&
    `A notification has waited for ${age(waited)}: see below.`,
    dead > 0 && (
      <a href="/console/dead-letters">
        {count(dead, "dead letter waits", "dead letters wait")} for somebody
      </a>
    ),
  ].filter((problem) => problem !== false);
}

function Oldest({ rows }: { rows: DeliveryStatus["oldest"] }): JSX.Element {
  return (
    <Table
      label="Notifications that wait longest"
      columns={["Since", "Event", "Of", "Version", "State", "Attempts", "Next try", "Error"]}
      rows={rows.map((row) => [
        <When at={row.created_at} />,
        <EventLink id={row.event_id} />,
        row.aggregate_key,
        row.version,
        row.locked_by === null ? row.status : `${row.status} by ${row.locked_by}`,
        row.attempt_count,
        <When at={row.next_retry_at} />,
        row.last_error ?? "–",
      ])}
      none="Nothing waits."
    />
  );
}
