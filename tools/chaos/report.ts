// The figures of one run, and of several runs together.
import { type AnyRequest, isChange } from "../load/any_request.ts";
import { changeIn } from "./invariants/change_invariants.ts";
import { changeOf, type Invariant } from "./invariants/invariant.ts";
import type { Outcome } from "../load/repeating_client.ts";
import type { Evidence } from "./evidence.ts";
import { wasDone } from "./inject.ts";
import { receivedAgain } from "./order_invariants.ts";
import { repeatedSends } from "./run_invariants.ts";
import { type FaultKind, faultKinds } from "./plan.ts";

export interface Figures {
  seeds: number[];
  minutes: number;
  faults: Partial<Record<FaultKind, number>>;
  "left out": number;
  "own stalls": number;
  acknowledged: number;
  refused: number;
  reserved: number;
  cancelled: number;
  repeated: number;
  "key conflicts": number;
  attempts: Partial<Record<Outcome, number>>;
  notifications: number;
  "dead letters": number;
  sends: number;
  "sends repeated": number;
  orders: number;
  received: number;
  "received again": number;
  "changes of accounts": number;
  "sessions": number;
  "let in": number;
  "kept out": number;
  tickets: number;
  matches: number;
  "wiped tickets": number;
  "wiped events": number;
  "events sent again": number;
  poison: number;
  "poison kept": number;
  lost: number;
  doubled: number;
  "out of order": number;
  violations: number;
  "seconds to heal": number;
}

export interface Report {
  healed: boolean;
  still: string | undefined;
  figures: Figures;
  invariants: Invariant[];
}

export interface EndedRun {
  seed: number;
  minutes: number;
  evidence: Evidence;
  sentAgain: number;
}

export function reportOf(run: EndedRun, invariants: Invariant[]): Report {
  const { evidence } = run;
  const { requests, injected, healing, tables, log, poison, accounts } = evidence;
  const answered = (status: number, isCounted: (request: AnyRequest) => boolean = () => true) =>
    requests.filter(({ request, kind, answer }) =>
      kind === "change" && answer?.status === status && isCounted(request)
    ).length;
  const done = injected.filter(wasDone);
  const attempts: Figures["attempts"] = {};
  for (const one of requests) add(attempts, one.attempts);
  const violationsOf = (pattern: RegExp) =>
    invariants.filter(({ statement }) => pattern.test(statement)).reduce(
      (sum, i) => sum + i.violations,
      0,
    );
  return {
    healed: healing.still === undefined,
    still: healing.still,
    invariants,
    figures: {
      seeds: [run.seed],
      minutes: run.minutes,
      faults: countBy(done.map(({ fault }) => fault.kind)),
      "left out": injected.length - done.length,
      "own stalls": evidence.stalls.length,
      acknowledged: answered(200, isChange),
      refused: answered(409, isChange),
      reserved: answered(202, ({ action }) => action === "RESERVE"),
      cancelled: tables.reservations.filter(({ status }) => status === "CANCELLED").length,
      repeated: requests.filter(({ kind }) => kind === "repeat" || kind === "double tap").length,
      "key conflicts": requests.filter(({ kind }) => kind === "key conflict").length,
      attempts,
      notifications: tables.notifications.length,
      "dead letters": tables.deadLetters.length,
      sends: log.sends.length,
      "sends repeated": repeatedSends(log.sends).length,
      orders: tables.orders.length,
      received: evidence.received.length,
      "received again": receivedAgain(evidence.received).length,
      "changes of accounts": evidence.accountTables.audit.length,
      sessions: accounts.sessions.length,
      "let in": accounts.looks.filter(({ status }) => status === 200).length,
      "kept out": accounts.looks.filter(({ status }) => status === 401 || status === 403).length,
      ...figuresOf(evidence.matches),
      "events sent again": run.sentAgain,
      poison: poison.length,
      "poison kept": new Set(evidence.givenUp.map(({ poison }) => poison ?? "")).size,
      ...losses(evidence),
      "out of order": violationsOf(/^1\. The versions|higher version|in the order|in their order/),
      violations: invariants.reduce((sum, { violations }) => sum + violations, 0),
      "seconds to heal": Math.round(healing.ms / 100) / 10,
    },
  };
}

/** A run without acknowledged changes shows nothing. */
export function isGood({ healed, figures }: Report): boolean {
  return healed && figures.violations === 0 && figures.acknowledged > 0;
}

function figuresOf(
  { store, wipedStores, wipedStreams, notifications }: Evidence["matches"],
): Pick<Figures, "tickets" | "matches" | "wiped tickets" | "wiped events"> {
  const tickets = [...wipedStores, store].flatMap((one) => one.tickets);
  const told = new Set(notifications.map(({ event_id }) => event_id));
  const events = wipedStreams.flatMap((one) => one.events);
  return {
    tickets: tickets.length,
    matches: new Set(tickets.flatMap(({ match_id }) => match_id ?? [])).size,
    "wiped tickets": tickets.length - store.tickets.length,
    "wiped events": events.filter(({ event_id }) => !told.has(event_id)).length,
  };
}

/** Acknowledged changes without an audit row or a notification, and those with two. */
function losses({ requests, tables }: Evidence): { lost: number; doubled: number } {
  const audits = countBy(tables.audit.map(({ request_id }) => request_id));
  const notifications = countBy(tables.notifications.map(changeOf));
  const changes = requests.flatMap(({ request, kind, answer }) =>
    isChange(request) && kind === "change" && answer?.status === 200 ? [{ request, answer }] : []
  );
  const counts = changes.map(({ request, answer }) => [
    audits[request.key] ?? 0,
    notifications[changeIn({ request, answer })] ?? 0,
  ]);
  return {
    lost: counts.filter((each) => each.includes(0)).length,
    doubled: counts.filter((each) => each.some((count) => count > 1)).length,
  };
}

function countBy<Name extends string>(names: Name[]): Record<Name, number> {
  const groups = [...Map.groupBy(names, (name) => name)];
  return Object.fromEntries(groups.map(([name, { length }]) => [name, length])) as Record<
    Name,
    number
  >;
}

export function sumOf(all: Figures[]): Figures {
  const [first, ...rest] = structuredClone(all);
  if (!first) throw new Error("There is no run to sum up");
  for (const other of rest) {
    const longest = Math.max(first["seconds to heal"], other["seconds to heal"]);
    add(first as never, other as never);
    first["seconds to heal"] = longest;
  }
  return first;
}

type Sums = { [name: string]: number | Sums | number[] };

function add(into: Sums, other: Sums): void {
  for (const [name, value] of Object.entries(other)) {
    if (typeof value === "number") into[name] = Number(into[name] ?? 0) + value;
    else if (Array.isArray(value)) (into[name] as number[]).push(...value);
    else add((into[name] ??= {}) as Sums, value);
  }
}

export function textOfFigures(figures: Figures): string {
  const { faults, attempts, seeds, ...rest } = figures;
  const lines = [
    ["seeds", seeds.join(", ")],
    ...Object.entries(rest).map(([name, value]) => [name, value.toLocaleString("en")]),
    ...Object.entries(attempts).map(([name, count]) => [`attempts: ${name}`, count]),
    ...faultKinds.filter((kind) => faults[kind]).map((kind) => [`faults: ${kind}`, faults[kind]]),
  ];
  return lines.map(([name, value]) => `${String(name).padEnd(24)} ${value}`).join("\n");
}

export function textOfInvariants(invariants: Invariant[]): string {
  return invariants.map(({ statement, checked, violations }) =>
    `${violations === 0 ? "holds " : "BROKEN"} ${String(checked).padStart(8)} checked, ${
      String(violations).padStart(4)
    } violated  ${statement}`
  ).join("\n");
}
