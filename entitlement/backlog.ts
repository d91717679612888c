import type { Database } from "@kenri/shared/postgres/postgres.ts";
import { countBacklog } from "@kenri/shared/queue/backlog.ts";
import { collectedGauge, type Figure } from "@kenri/shared/telemetry/collected.ts";
import { outbox } from "./outbox.ts";

// Metrics of what waits to be published and of what failed for good.

// Reads an index that contains nothing else.
const failedColumn = `(select count(*) from (
          select from outbox_events where not unfinished and published_at is null
          order by event_id limit $1) as found) as failed`;

const backlogSize = collectedGauge(
  "entitlement_outbox_backlog_current",
  "events that wait to be published, counted up to 100,000",
);
const backlogAge = collectedGauge(
  "entitlement_outbox_backlog_age_seconds",
  "age of the oldest event that waits to be published; 0 when none waits",
);
const failedEvents = collectedGauge(
  "entitlement_outbox_failed_current",
  "events that failed for good (`FAILED`), counted up to 100,000",
);

export async function backlogFigures(database: Database): Promise<Figure[]> {
  const { waiting, oldest_waiting_seconds, failed } = await countBacklog<
    { failed: number }
  >(database, outbox, 100_000, [failedColumn]);
  return [
    { gauge: backlogSize, value: waiting },
    { gauge: backlogAge, value: Math.max(0, oldest_waiting_seconds ?? 0) },
    { gauge: failedEvents, value: failed },
  ];
}
