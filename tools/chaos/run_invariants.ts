// What must hold of the replicas' log: the order of sends, the cause of each repeated send, and why each
// process ended.
import { type Invariant, invariant } from "./invariants/invariant.ts";
import type { AllTables } from "./invariants/tables.ts";
import type { Evidence } from "./evidence.ts";
import { type Injected, wasDone } from "./inject.ts";
import { leaseMs } from "./replica_settings.ts";
import type { SendLine } from "./service_log.ts";

/** Only the first send of each counts; a repeated one may come later. */
export function sendsAreInOrder(sends: SendLine[], { notifications }: AllTables): Invariant {
  const first = new Map<string, number>();
  for (const { notification_id, line } of sends) {
    if (!first.has(notification_id)) first.set(notification_id, line);
  }
  const sent = notifications.filter(({ status }) => status === "SENT");
  const lineOf = new Map(sent.map((row) => [place(row), first.get(row.notification_id) ?? 0]));
  return invariant(
    "4. Notifications of one entitlement or balance are sent in the order of their versions",
    sent,
    (row) => {
      const before = lineOf.get(place({ ...row, version: row.version - 1 }));
      return before === undefined || before < (lineOf.get(place(row)) ?? 0);
    },
  );
}

function place(
  row: { user_id: string; stock_keeping_unit: string; version: number },
): string {
  return JSON.stringify([row.user_id, row.stock_keeping_unit, row.version]);
}

/** A claim is older than its send, and a settle is retried for a while. */
const marginMs = 5_000;

export function repeatedSends(sends: SendLine[]): { first: SendLine; again: SendLine }[] {
  return [...Map.groupBy(sends, ({ notification_id }) => notification_id).values()]
    .flatMap(([first, ...more]) => first ? more.map((again) => ({ first, again })) : []);
}

/** The first sender could not settle: it was ended or frozen, or its database was unavailable. */
export function repeatedSendsAreExplained(evidence: Evidence): Invariant {
  const { log, injected, stalls, runs } = evidence;
  const replicaOf = new Map(runs.map(({ pid, replica }) => [pid, replica]));
  return invariant(
    "5. A send is repeated only after a fault of its sender or of its database",
    repeatedSends(log.sends),
    ({ first, again }) => {
      const replica = replicaOf.get(first.pid) ?? "";
      const faults = [
        ...injected.filter((one) => wasDone(one) && touches(one, replica)),
        ...log.stalls.filter(({ pid }) => pid === first.pid),
        ...stalls,
      ];
      return areExplainedBy(faults, first.at, again.at);
    },
  );
}

export function areExplainedBy(
  faults: { from: number; until: number }[],
  firstAt: number,
  againAt: number,
): boolean {
  return faults.some(({ from, until }) => from < againAt && until > firstAt - marginMs);
}

function touches({ fault: { target, kind } }: Injected, replica: string): boolean {
  const isOfDatabase = target === "notification database" || target === `${replica} > database`;
  return isOfDatabase || (target === replica && kind !== "clock");
}

export function servicesEndWhenAsked({ runs, log }: Evidence): Invariant {
  const listening = new Map(
    log.lines.filter(({ message }) => message.startsWith("Listening on "))
      .map(({ pid, at }) => [pid, at]),
  );
  return invariant(
    "A service ends only when it is asked to, and with exit code 0",
    runs.filter(({ until }) => until !== undefined),
    ({ asked, askedAt, code, pid }) => {
      if (asked === "SIGKILL") return true;
      // A process that does not listen yet may not handle the signal yet either.
      const heard = (listening.get(pid) ?? Infinity) <= askedAt;
      return asked === "SIGTERM" && (code === 0 || !heard);
    },
  );
}

/** In addition to the lease: the next claim, and the work itself. */
const healMarginMs = 5_000;

/** The lease of a worker that died ends, and others take over what it had. */
export function healsInTime({ healing }: Evidence): Invariant {
  const withinMs = leaseMs + healMarginMs;
  return invariant(
    `5. After the last fault everything is finished within the lease and ${healMarginMs / 1_000} s`,
    [healing],
    ({ ms }) => ms <= withinMs,
  );
}
