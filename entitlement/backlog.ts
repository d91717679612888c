import { queueFigures, type QueueGauges } from "@kenri/shared/operators/backlog.ts";
import type { Database } from "@kenri/shared/postgres/postgres.ts";
import { collectedGauge, type Figure } from "@kenri/shared/telemetry/collected.ts";
import { deadOutbox } from "./operators/dead_events.ts";
import { deadReservation } from "./operators/dead_reservations.ts";
import { findUpcoming } from "./operators/points/upcoming.ts";
import { outbox } from "./outbox.ts";
import { reservations } from "./points/reservations.ts";

// Metrics of what waits to be published or to be carried out, and of what failed for good.

const events: QueueGauges = {
  table: outbox,
  waiting: collectedGauge(
    "entitlement_outbox_backlog_current",
    "events that wait to be published, counted up to 100,000",
  ),
  ageSeconds: collectedGauge(
    "entitlement_outbox_backlog_age_seconds",
    "age of the oldest event that waits to be published; 0 when none waits",
  ),
  dead: [{
    table: deadOutbox,
    gauge: collectedGauge(
      "entitlement_outbox_failed_current",
      "events that failed for good (`FAILED`), counted up to 100,000",
    ),
  }],
};

const due: QueueGauges = {
  table: reservations,
  waiting: collectedGauge(
    "entitlement_reservations_due_current",
    "due reservations that wait to be carried out, counted up to 100,000",
  ),
  ageSeconds: collectedGauge(
    "entitlement_reservations_due_age_seconds",
    "how long ago the time of the reservation came that has waited longest; 0 when none waits",
  ),
  dead: [{
    table: deadReservation,
    gauge: collectedGauge(
      "entitlement_reservations_failed_current",
      "reservations that failed for good (`FAILED`), counted up to 100,000",
    ),
  }],
};

const upcoming = collectedGauge(
  "entitlement_reservations_upcoming_current",
  "reservations whose time has not come, counted up to 10,000",
);
const upcomingAtMost = 10_000; // a million are normal, and nothing depends on their number

export async function backlogFigures(database: Database): Promise<Figure[]> {
  const [ofEvents, ofReservations, { upcoming: count }] = await Promise.all([
    queueFigures(database, events),
    queueFigures(database, due),
    findUpcoming(database, upcomingAtMost),
  ]);
  return [...ofEvents, ...ofReservations, { gauge: upcoming, value: count }];
}
