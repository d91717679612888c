import { refusalsBy } from "@kenri/shared/http/limits.ts";
import {
  counter,
  countersBy,
  delaySeconds,
  gauge,
  histogram,
} from "@kenri/shared/telemetry/metrics.ts";
import type { Result } from "@kenri/shared/commands/route.ts";

const commands = counter(
  "entitlement_command_total",
  "requests for a change, by their result",
  [
    ...["action", "result"] as const,
  ],
);
const results = [
  ...["applied", "replayed", "state_conflict", "key_conflict"] as const,
  ...["invalid", "unavailable", "error"] as const,
];
const actions = [
  ...["GRANT", "REVOKE", "RESERVE", "CANCEL"] as const,
  ...["POINTS_GRANT", "POINTS_SPEND", "POINTS_RESERVE", "POINTS_CANCEL"] as const,
];
const commandsOf = Object.fromEntries(
  actions.map((action) => [
    action,
    countersBy(results, (result) => commands.labels(action.toLowerCase(), result)),
  ]),
) as Record<typeof actions[number], Record<typeof results[number], { inc(): void }>>;

const overLimit = {
  entitlements: refusalsBy("entitlements_per_user"),
  balance: refusalsBy("balance"),
};

// A change over a limit counts as a state conflict.
export function countCommand(action: typeof actions[number], result: Result): void {
  if (result === "over_limit") {
    overLimit[action.startsWith("POINTS") ? "balance" : "entitlements"].inc();
  }
  commandsOf[action][result === "over_limit" ? "state_conflict" : result].inc();
}

export const publishDelay = histogram(
  "entitlement_outbox_publish_delay_seconds",
  "time from the change to the PubAck of its event; a republished event counts again, from its change",
  delaySeconds,
).labels();

export const lateness = histogram(
  "entitlement_reservation_lateness_seconds",
  "time from the time of a reservation, or from its request if that was later, until it was done",
  delaySeconds,
).labels();

export const eventsChecked = counter(
  "entitlement_reconcile_checked_total",
  "events checked at the notification service, by the state found",
  ["state"],
);
export const eventsRepublished = counter(
  "entitlement_reconcile_mended_total",
  "events republished because they were not received",
);
export const unreceivedEvents = gauge(
  "entitlement_unreceived_current",
  "events that were not received, as of the last reconciliation",
  ["state"],
);
export const provenUntil = gauge(
  "entitlement_proven_until_timestamp_seconds",
  "time up to which all events were received, except those counted as unreceived",
);
