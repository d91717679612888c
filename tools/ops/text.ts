// What people read: tables, ages and times.

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

/** What comes from outside must not steer the terminal. */
export function printable(text: string): string {
  // deno-lint-ignore no-control-regex
  return text.replaceAll(/[\u0000-\u001f\u007f-\u009f]/g, "\ufffd");
}

export function age(seconds: number | null): string {
  if (seconds === null) return "-";
  if (seconds < 1) return `${Math.max(0, Math.round(seconds * 1_000))} ms`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7_200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.round(seconds / 3_600)} h`;
  return `${Math.round(seconds / 86_400)} d`;
}

export function ageOf(time: string): string {
  return age((Date.now() - Date.parse(time)) / 1_000);
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
