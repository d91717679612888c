import type { Result } from "@kenri/shared/commands/route.ts";
import { counter, countersBy, delaySeconds, histogram } from "@kenri/shared/telemetry/metrics.ts";

const resolved = counter(
  "account_resolve_total",
  "identities that were resolved to a user, by whether it was the first login",
  ["result"],
);
const resolvedBy = countersBy(
  ["registered", "known"] as const,
  (result) => resolved.labels(result),
);

export function countResolved(isNew: boolean): void {
  resolvedBy[isNew ? "registered" : "known"].inc();
}

const commands = counter(
  "account_command_total",
  "requests for a change of an account, by their result",
  ["action", "result"],
);
const actions = ["profile", "suspend", "resume", "roles", "end_sessions", "end_session"] as const;
export type CountedAction = typeof actions[number];
const results = [
  ...["applied", "state_conflict", "invalid", "unavailable", "error"] as const,
];
const commandsOf = Object.fromEntries(
  actions.map((action) => [
    action,
    countersBy(results, (result) => commands.labels(action, result)),
  ]),
) as Record<CountedAction, Record<typeof results[number], { inc(): void }>>;

// No answer is stored, so none is repeated.
export function countAs(action: CountedAction): (result: Result) => void {
  return (result) => commandsOf[action][result as typeof results[number]]?.inc();
}

export const publishDelay = histogram(
  "account_outbox_publish_delay_seconds",
  "time from the change to the PubAck of its event; a republished event counts again, from its change",
  delaySeconds,
).labels();
