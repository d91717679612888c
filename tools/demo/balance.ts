// Compares what was made with the notifications that arrived.
import type { Arrival } from "./inboxes.ts";
import { type Gift, sum } from "./points.ts";
import type { Change, Kind } from "./story.ts";

// Everything that must arrive.
export type Made = Change | Gift;

const mostFindings = 10; // more would repeat the same

// One sentence for each notification that is missing, duplicate, unknown or failed.
export function findings(made: Made[], arrivals: Arrival[]): string[] {
  const arrived = Map.groupBy(arrivals, nameOf);
  const names = new Set(made.map(nameOf));
  const found = [
    ...[...names].filter((name) => !arrived.has(name)).map((name) => `Missing: ${name}`),
    ...[...arrived].filter(([, same]) => same.length > 1)
      .map(([name, same]) => `Arrived ${same.length} times: ${name}`),
    ...[...arrived.keys()].filter((name) => !names.has(name))
      .map((name) => `Arrived, but was never made: ${name}`),
    ...arrivals.filter(({ status }) => status === "FAILED")
      .map((arrival) => `Could not be delivered: ${nameOf(arrival)}`),
  ];
  const more = found.length - mostFindings;
  return more > 0 ? [...found.slice(0, mostFindings), `… and ${more} more`] : found;
}

function nameOf(one: Made | Arrival): string {
  return "amount" in one
    ? `${one.user} +${one.amount} points of reservation ${one.reservationId}`
    : `${one.user} ${one.item} ${one.type} ${one.version}`;
}

export interface Balance {
  user: string;
  expected: number; // what the shop has given
  found: number;
}

// One sentence for each user who does not have the points that the shop has given.
export function wrongBalances(balances: Balance[]): string[] {
  return balances.filter(({ expected, found }) => found !== expected)
    .map(({ user, expected, found }) => `${user} has ${found} points, not ${expected}`);
}

export function table(
  counts: Map<Kind, number>,
  made: Made[],
  arrivals: Arrival[],
  balances: Balance[],
  webhooks: Set<string> | undefined, // the ids of the events
): string {
  const sent = arrivals.filter(({ status }) => status === "SENT");
  const row = (name: string, made: number | string, arrived: number | string) =>
    `  ${name.padEnd(34)}${String(made).padStart(8)}${String(arrived).padStart(10)}`;
  const count = (name: string, fits: (one: Made | Arrival) => boolean) =>
    row(name, made.filter(fits).length, sent.filter(fits).length);
  const ofType = (type: string) => (one: Made | Arrival) => "type" in one && one.type === type;
  const slowest = sent.map(({ tookMs }) => tookMs).sort((a, b) => a - b);
  return [
    "",
    row("", "made", "arrived"),
    count("granted", ofType("EntitlementGranted")),
    count("revoked", ofType("EntitlementRevoked")),
    count("points added at their time", (one) => "amount" in one),
    row("requests sent twice at once", counts.get("double tap") ?? 0, "-"),
    row("repeated with the same key", counts.get("repeat") ?? 0, "-"),
    row("refused, already in that state", counts.get("refusal") ?? 0, "-"),
    row("refused, key of another request", counts.get("key of another") ?? 0, "-"),
    row("all changes", made.length, sent.length),
    ...webhooks
      ? [row("the same as webhooks", made.length, sent.filter(({ id }) => webhooks.has(id)).length)]
      : [],
    row(
      "points given, points on balances",
      sum(balances.map(({ expected }) => expected)),
      sum(balances.map(({ found }) => found)),
    ),
    "",
    `  from change to delivery: median ${slowest[slowest.length >> 1] ?? "-"} ms, ` +
    `slowest ${slowest.at(-1) ?? "-"} ms`,
    "",
  ].join("\n");
}
