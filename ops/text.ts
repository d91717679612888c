// Tables, lists, ages and times for a terminal.
import { age as ageOnPages, ageOf } from "@kenri/shared/console/text.ts";
import { printable } from "@kenri/shared/process/printable.ts";

export { ageOf };

/** Each column is as wide as its widest cell; the last one is not padded. */
export function table(head: string[], rows: (string | number | null | undefined)[][]): string {
  const lines = [head, ...rows.map((row) => row.map((cell) => printable(`${cell ?? "-"}`)))];
  const widths = head.map((_, column) =>
    Math.max(...lines.map((line) => line[column]?.length ?? 0))
  );
  return lines.map((line) =>
    line.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  ").trimEnd()
  ).join("\n");
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

export function count(number: number, one: string, several = `${one}s`): string {
  return `${number} ${number === 1 ? one : several}`;
}

/** One line for each row, with its name on the left. */
export function list(rows: [string, string | number][]): string {
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows.map(([name, value]) => `${name.padEnd(width)}  ${printable(`${value}`)}`).join("\n");
}
