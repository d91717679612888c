import type { Settlement } from "@kenri/shared/process/job.ts";
import { countRefusal } from "@kenri/shared/http/limits.ts";
import {
  counter,
  countersBy,
  delaySeconds,
  gauge,
  histogram,
} from "@kenri/shared/telemetry/metrics.ts";
import { type Database, query } from "@kenri/shared/postgres/postgres.ts";
import { collectedGauge, type Figure } from "@kenri/shared/telemetry/scrape.ts";
import type { Action } from "./entitlement.ts";
import type { OutboxRow, Published } from "./outbox.ts";

const commands = counter("entitlement_command_total", "requests for a change", [
  ...["action", "result"] as const,
]);
const results = [
  ...["applied", "replayed", "state_conflict", "key_conflict"] as const,
  ...["invalid", "unavailable", "error"] as const,
];
const commandsOf = {
  GRANT: countersBy(results, (result) => commands.labels("grant", result)),
  REVOKE: countersBy(results, (result) => commands.labels("revoke", result)),
};

// As a command, one over the limit of its user is refused for the state that there is.
export function countCommand(
  action: Action,
  result: (typeof results)[number] | "over_limit",
): void {
  if (result === "over_limit") countRefusal("entitlements_per_user");
  commandsOf[action][result === "over_limit" ? "state_conflict" : result].inc();
}

const publishDelay = histogram(
  "entitlement_outbox_publish_delay_seconds",
  "from the change to its acknowledgement by the stream; an event that is put back counts again, whole",
  delaySeconds,
).labels();

export function observePublished(
  settled: Settlement<OutboxRow, Published>[],
  owned: Set<string>,
): void {
  for (const settlement of settled) {
    if (settlement.kind !== "done" || !owned.has(settlement.row.id)) continue;
    const { row, result } = settlement;
    publishDelay.observe(row.content.age_seconds + (result.ackedAt - row.claimedAt) / 1_000);
  }
}

const backlog = collectedGauge(
  "entitlement_outbox_backlog_current",
  "events that wait for the stream, counted up to 100,000",
);
const backlogAge = collectedGauge(
  "entitlement_outbox_backlog_age_seconds",
  "age of the oldest of them; 0 when none waits",
);
const failed = collectedGauge(
  "entitlement_outbox_failed_current",
  "events that were given up (`FAILED`), counted up to 100,000",
);
const countUpTo = 100_000;

// Each by the index that has nothing else in it.
export async function outboxFigures(database: Database): Promise<Figure[]> {
  const [found] = await query<{ backlog: number; age: number; failed: number }>(
    database,
    `select
       (select count(*) from (
          select from outbox_events where unfinished order by created_at limit $1) as waiting) as backlog,
       coalesce((
         select extract(epoch from now() - created_at)::float8
         from outbox_events where unfinished order by created_at limit 1), 0) as age,
       (select count(*) from (
          select from outbox_events where not unfinished and published_at is null
          order by event_id limit $1) as given_up) as failed`,
    [countUpTo],
  );
  if (!found) return [];
  return [
    { gauge: backlog, value: found.backlog },
    { gauge: backlogAge, value: Math.max(0, found.age) },
    { gauge: failed, value: found.failed },
  ];
}

export const eventsChecked = counter(
  "entitlement_reconcile_checked_total",
  "events that were looked for at the notification service, by what was found",
  ["state"],
);
export const eventsRepublished = counter(
  "entitlement_reconcile_mended_total",
  "events put back to be published, because they were not received",
);
export const unreceivedEvents = gauge(
  "entitlement_unreceived_current",
  "events known not to be received, at the last reconciliation",
  ["state"],
);
export const provenUntil = gauge(
  "entitlement_proven_until_timestamp_seconds",
  "until when all events are known to be received, but those that are counted as unreceived",
);
