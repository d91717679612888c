// Compares the changes that were made with the notifications that arrived.
import type { Arrival } from "./inboxes.ts";
import type { Change, Kind } from "./story.ts";

const mostFindings = 10; // more would repeat the same

// One sentence for each notification that is missing, duplicate, unknown or failed.
export function findings(changes: Change[], arrivals: Arrival[]): string[] {
  const arrived = Map.groupBy(arrivals, nameOf);
  const made = new Set(changes.map(nameOf));
  const found = [
    ...changes.filter((change) => !arrived.has(nameOf(change)))
      .map((change) => `Missing: ${nameOf(change)}`),
    ...[...arrived].filter(([, same]) => same.length > 1)
      .map(([name, same]) => `Arrived ${same.length} times: ${name}`),
    ...[...arrived.keys()].filter((name) => !made.has(name))
      .map((name) => `Arrived, but was never made: ${name}`),
    ...arrivals.filter(({ status }) => status === "FAILED")
      .map((arrival) => `Could not be delivered: ${nameOf(arrival)}`),
  ];
  const more = found.length - mostFindings;
  return more > 0 ? [...found.slice(0, mostFindings), `… and ${more} more`] : found;
}

function nameOf({ user, item, type, version }: Change | Arrival): string {
  return `${user} ${item} ${type} ${version}`;
}

export function table(counts: Map<Kind, number>, changes: Change[], arrivals: Arrival[]): string {
  const sent = arrivals.filter(({ status }) => status === "SENT");
  const row = (name: string, made: number | string, arrived: number | string) =>
    `  ${name.padEnd(34)}${String(made).padStart(8)}${String(arrived).padStart(10)}`;
  const ofType = (type: string) => (one: { type: string }) => one.type === type;
  const rows = (["Granted", "Revoked"] as const).map((name) => {
    const type = ofType(`Entitlement${name}`);
    return row(name.toLowerCase(), changes.filter(type).length, sent.filter(type).length);
  });
  const slowest = sent.map(({ tookMs }) => tookMs).sort((a, b) => a - b);
  return [
    "",
    row("", "made", "arrived"),
    ...rows,
    row("of these, sent twice at once", counts.get("double tap") ?? 0, ""),
    row("repeated with the same key", counts.get("repeat") ?? 0, "-"),
    row("refused, already in that state", counts.get("refusal") ?? 0, "-"),
    row("refused, key of another request", counts.get("key of another") ?? 0, "-"),
    row("all changes", changes.length, sent.length),
    "",
    `  from change to delivery: median ${slowest[slowest.length >> 1] ?? "-"} ms, ` +
    `slowest ${slowest.at(-1) ?? "-"} ms`,
    "",
  ].join("\n");
}
