// Tables, lists, ages and times for a terminal.
import { age as ageOnPages, ageOf } from "../console/text.ts";
import { printable } from "../process/printable.ts";

export { ageOf };

type Cell = string | number | null | undefined;

/** Each column is as wide as its widest cell; the last one is not padded. */
export function table<Row>(
  rows: Row[],
  columns: Record<string, (row: Row) => Cell>,
  shownAtMost = Infinity,
): string {
  const cells = rows.slice(0, shownAtMost).map((row) =>
    Object.values(columns).map((cellOf) => printable(`${cellOf(row) ?? "-"}`))
  );
  const lines = [Object.keys(columns), ...cells];
  const widths = lines[0]?.map((_, column) =>
    Math.max(...lines.map((line) => line[column]?.length ?? 0))
  );
  return [
    ...lines.map((line) =>
      line.map((cell, column) => cell.padEnd(widths?.[column] ?? 0)).join("  ").trimEnd()
    ),
    ...(rows.length > shownAtMost ? [`… and ${rows.length - shownAtMost} more`] : []),
  ].join("\n");
}

export function age(seconds: number | null): string {
  return seconds === null ? "-" : ageOnPages(seconds);
}

export function ago(time: string | null): string {
  return time === null ? "never" : `${ageOf(time)} ago`;
}

/** In UTC, like all times of the services. */
export function time(at: string | null | undefined): string {
  return at ? at.replace("T", " ").replace(/(\.\d{3})\d*Z$/, "$1") : "-";
}

export function count(number: number, one: string): string {
  return `${number} ${one}${number === 1 ? "" : "s"}`;
}

type Values = Record<string, string | number | undefined>;

/** One line for each value, with its name on the left. */
export function list(values: Values, width = widthOf(values)): string {
  return given(values)
    .map(([name, value]) => `${name.padEnd(width)}  ${printable(`${value}`)}`).join("\n");
}

/** The width of the longest name of a value that is shown. */
export function widthOf(values: Values): number {
  return Math.max(0, ...given(values).map(([name]) => name.length));
}

function given(values: Values): [string, string | number | undefined][] {
  return Object.entries(values).filter(([, value]) => value !== undefined);
}
