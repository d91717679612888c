// Tables, lists, ages and times for a terminal.
import { age as ageOnPages, ageOf } from "@kenri/shared/console/text.ts";
import { printable } from "@kenri/shared/process/printable.ts";

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

/** One line for each value, with its name on the left. */
export function list(values: Record<string, string | number | undefined>): string {
  const rows = Object.entries(values).filter(([, value]) => value !== undefined);
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows.map(([name, value]) => `${name.padEnd(width)}  ${printable(`${value}`)}`).join("\n");
}
