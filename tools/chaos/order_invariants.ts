// What must hold of orders in a chaos run: no fault makes one fail, and one that a receiver has
// accepted is sent again only after a fault on its way.
import { type Invariant, invariant } from "./invariants/invariant.ts";
import { isAccepted, type Receipt } from "./invariants/order_invariants.ts";
import type { AllTables } from "./invariants/tables.ts";
import type { Evidence } from "./evidence.ts";
import { type Injected, wasDone } from "./inject.ts";
import { areExplainedBy } from "./run_invariants.ts";

/** All receivers come back, and what was parked meanwhile has used up no attempt. */
export function ordersSucceed({ orders }: AllTables): Invariant {
  return invariant(
    "15. Every order SUCCEEDED, whatever was down: none is parked or has used up its attempts",
    orders,
    ({ status }) => status === "SUCCEEDED",
  );
}

export function endpointsComeBack({ endpoints }: AllTables): Invariant {
  return invariant(
    "15. Every endpoint is ACTIVE again, and sends what it parked",
    endpoints,
    ({ state, is_draining }) => state === "ACTIVE" && !is_draining,
  );
}

interface Again {
  first: Receipt;
  again: Receipt;
}

/** What a receiver got again after it had accepted it. */
export function receivedAgain(received: Receipt[]): Again[] {
  const first = new Map<string, Receipt>();
  const found: Again[] = [];
  for (const one of received) {
    const send = `${one.url} ${one.send_id}`;
    const before = first.get(send);
    if (before) found.push({ first: before, again: one });
    else if (isAccepted(one)) first.set(send, one);
  }
  return found;
}

export function repeatedOrdersAreExplained(evidence: Evidence): Invariant {
  return invariant(
    "12. What a receiver accepted is sent to it again only after a fault on the way",
    receivedAgain(evidence.received),
    ({ first, again }) => areExplainedBy(faultsOf(evidence, first), first.at, again.at),
  );
}

/** A worker that stands still after its claim may send what another worker has finished meanwhile. */
export function whatSucceededIsNotSent(evidence: Evidence): Invariant {
  const { received, tables } = evidence;
  const decidedAt = new Map(
    tables.ledger.filter(({ status }) => status === "SUCCEEDED")
      .map(({ order_id, decided_at }) => [order_id, decided_at]),
  );
  const endOf = new Map(
    tables.orders.map(({ id, url, send_id }) => [`${url} ${send_id}`, decidedAt.get(id)]),
  );
  return invariant(
    "12. Nothing is sent when the ledger says SUCCEEDED, except by a worker that stood still",
    received,
    (one) => {
      const end = endOf.get(`${one.url} ${one.send_id}`) ?? Infinity;
      return one.at <= end || areExplainedBy(faultsOf(evidence, one), end, one.at);
    },
  );
}

type Span = { from: number; until: number };

function faultsOf({ injected, log, stalls }: Evidence, { url }: Receipt): Span[] {
  return [
    ...injected.filter((one) => wasDone(one) && isOnTheWay(one, url)),
    ...log.stalls,
    ...stalls,
  ];
}

/** The worker, its database, the sender, the receiver, and what connects them. */
function isOnTheWay({ fault: { kind, target } }: Injected, url: string): boolean {
  return kind !== "clock" &&
    (target === "notification database" || url.endsWith(`/${target}`) ||
      /^(notification|sender)-\d($| > (database|sender))/.test(target));
}
