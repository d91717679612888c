import { queueFigures, type QueueGauges } from "@kenri/shared/operators/backlog.ts";
import type { Database } from "@kenri/shared/postgres/postgres.ts";
import { collectedGauge, type Figure } from "@kenri/shared/telemetry/collected.ts";
import { deadOutbox } from "./operators/dead_events.ts";
import { outbox } from "./outbox.ts";

// Metrics of what waits to be published, and of what failed for good.

const events: QueueGauges = {
  table: outbox,
  waiting: collectedGauge(
    "account_outbox_backlog_current",
    "events that wait to be published, counted up to 100,000",
  ),
  ageSeconds: collectedGauge(
    "account_outbox_backlog_age_seconds",
    "age of the oldest event that waits to be published; 0 when none waits",
  ),
  dead: [{
    table: deadOutbox,
    gauge: collectedGauge(
      "account_outbox_failed_current",
      "events that failed for good (`FAILED`), counted up to 100,000",
    ),
  }],
};

export function backlogFigures(database: Database): Promise<Figure[]> {
  return queueFigures(database, events);
}
