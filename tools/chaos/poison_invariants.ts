// Messages that are not events must become dead letters, and no event may be treated like them.
import { type Invariant, invariant } from "./invariants/invariant.ts";
import type { Evidence } from "./evidence.ts";

export function poisonLeavesNothing({ tables, poison }: Evidence): Invariant {
  const left = Map.groupBy(tables.notifications, ({ user_id }) => user_id);
  return invariant(
    "3. A message that is not an event makes no notification, one of an unknown type at most one",
    poison,
    ({ id, kind }) => (left.get(id)?.length ?? 0) <= (kind === "unknown type" ? 1 : 0),
  );
}

/** Refused messages are left out, because JetStream gives up on them only after minutes. */
export function poisonIsKept({ poison, givenUp, injected }: Evidence): Invariant {
  const kept = new Set(givenUp.filter(({ has_copy }) => has_copy).map(({ poison }) => poison));
  // A server that is killed or wiped forgets messages, and advisories that it has not stored.
  const lastLoss = injected.filter(({ fault }) => fault.kind.startsWith("nats-"))
    .reduce((last, { until }) => Math.max(last, until), 0);
  return invariant(
    "6. A copy of each message that is not an event is kept, unless NATS lost the message first",
    poison.filter(({ kind, isStored, at }) =>
      isStored && at > lastLoss && kind !== "unknown type" && kind !== "refused"
    ),
    ({ id }) => kept.has(id),
  );
}

export function eventsAreNotGivenUp({ givenUp }: Evidence): Invariant {
  return invariant(
    "6. No fault exhausts the deliveries of an event",
    givenUp.filter(({ has_copy }) => has_copy),
    ({ poison }) => poison !== null,
  );
}
