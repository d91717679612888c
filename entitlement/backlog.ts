import { type Database, query, utc } from "@kenri/shared/postgres/postgres.ts";
import { type Backlog, backlogColumns } from "@kenri/shared/queue/backlog.ts";
import { collectedGauge, type Figure } from "@kenri/shared/telemetry/collected.ts";
import { outbox } from "./outbox.ts";

// What waits to be published and what failed for good, for the status page and for the metrics.

export interface OutboxBacklog extends Backlog {
  failed: number;
  last_published_at: string | null;
  unreceived: number;
}

// Each count reads an index that contains nothing else, up to the given number of rows.
export async function countBacklog(
  database: Database,
  countUpTo: number,
): Promise<OutboxBacklog> {
  const [backlog] = await query<OutboxBacklog>(
    database,
    `select ${backlogColumns(outbox)},
       (select count(*) from (
          select from outbox_events where not unfinished and published_at is null
          order by event_id limit $1) as found) as failed,
       (select ${utc("published_at")}
        from outbox_events
        where published_at is not null
        order by outbox_events.published_at desc
        limit 1) as last_published_at,
       (select count(*) from (select from unreceived_events limit $1) as found) as unreceived`,
    [countUpTo],
  );
  return backlog as OutboxBacklog;
}

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
  const { waiting, oldest_waiting_seconds, failed } = await countBacklog(database, 100_000);
  return [
    { gauge: backlogSize, value: waiting },
    { gauge: backlogAge, value: Math.max(0, oldest_waiting_seconds ?? 0) },
    { gauge: failedEvents, value: failed },
  ];
}
