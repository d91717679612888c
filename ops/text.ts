// What people read: tables, ages and times.
import { age as ageOnPages, ageOf } from "@kenri/shared/console/text.ts";
import { printable } from "@kenri/shared/process/printable.ts";

export { ageOf };

/** Columns as wide as they need to be; the last one ends where it ends. */
export function table(head: string[], rows: (string | number | null | undefined)[][]): string {
  const lines = [head, ...rows.map((row) => row.map((cell) => printable(`${cell ?? "-"}`)))];
  const widths = head.map((_, column) =>
    Math.max(...lines.map((line) => line[column]?.length ?? 0))
  );
  return lines.map((line) =>
    line.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  ").trimEnd()
  ).join("\n");
}

// As on the pages, but for a terminal.
export function age(seconds: number | null): string {
  return seconds === null ? "-" : ageOnPages(seconds);
}

export function ago(time: string | null): string {
  return time === null ? "never" : `${ageOf(time)} ago`;
}

/** In UTC, as everything that the services say. */
export function time(at: string | null | undefined): string {
  return at ? at.replace("T", " ").replace(/(\.\d{3})\d*Z$/, "$1") : "-";
}

export function count(number: number, one: string, several = `${one}s`): string {
  return `${number} ${number === 1 ? one : several}`;
}

/** Like `table` without a head: names on the left. */
export function list(rows: [string, string | number][]): string {
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows.map(([name, value]) => `${name.padEnd(width)}  ${printable(`${value}`)}`).join("\n");
}
