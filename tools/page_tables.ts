// Tables of a page in docs/ that are written from the code. Each stands between `<!-- table: NAME
// -->` and `<!-- end of table -->`; the passages around them are written by hand.
import { fileURLToPath } from "node:url";

/** Aligned as `deno fmt` aligns it. */
export function tableOf(head: string[], rows: string[][]): string {
  const widths = head.map((_, i) =>
    Math.max(3, ...[head, ...rows].map((row) => cell(row, i).length))
  );
  const line = (row: string[]) =>
    `| ${widths.map((width, i) => cell(row, i).padEnd(width)).join(" | ")} |`;
  return [line(head), line(widths.map((width) => "-".repeat(width))), ...rows.map(line)].join("\n");
}

const cell = (row: string[], i: number) => row[i] ?? "";

/** Writes the tables into the page. With --check it only reports a page that is not up to date. */
export async function writeTables(
  page: string,
  tables: Record<string, string>,
  task: string,
): Promise<void> {
  const file = fileURLToPath(new URL(`../docs/${page}`, import.meta.url));
  const present = await Deno.readTextFile(file);
  let wanted = present;
  for (const [name, table] of Object.entries(tables)) {
    const [start, end] = [`<!-- table: ${name} -->`, "<!-- end of table -->"];
    const from = wanted.indexOf(start);
    const to = wanted.indexOf(end, from);
    if (from < 0 || to < 0) throw new Error(`docs/${page} has no place for the table "${name}"`);
    wanted = `${wanted.slice(0, from + start.length)}\n\n${table}\n\n${wanted.slice(to)}`;
  }
  if (wanted === present) return;
  if (!Deno.args.includes("--check")) return await Deno.writeTextFile(file, wanted);
  console.error(`docs/${page} is not up to date: run "deno task ${task}"`);
  Deno.exitCode = 1;
}
