// docs/reliability/crash-matrix.md, whose tables are the rows of the matrix. To write them again:
// deno run --allow-all tests/faults/crash/page.ts && deno fmt docs/reliability
import { accountPoints } from "./account_points.ts";
import { changePoints } from "./change_points.ts";
import { deliveryPoints } from "./delivery_points.ts";
import type { Counts } from "./observer.ts";
import { matchPoints } from "./match_points.ts";
import { migrationPoints } from "./migration_points.ts";
import { orderPoints } from "./order_points.ts";
import { receivePoints } from "./receive_points.ts";
import { reminderPoints } from "./reminder_points.ts";
import { reservationPoints } from "./reservation_points.ts";
import { retentionPoints } from "./retention_points.ts";

export const page = new URL("../../../docs/reliability/crash-matrix.md", import.meta.url);

interface Row {
  dies: string;
  leaves: Counts;
  next: string;
  seen: string;
}

export function tables(): string {
  return [
    ...["## From the change to the stream", tableOf(changePoints)],
    ...["## From the stream to the notification", tableOf(receivePoints)],
    ...["## Delivery", tableOf(deliveryPoints)],
    ...["## Points and reservations", tableOf(reservationPoints)],
    ...["## Orders", tableOf(orderPoints)],
    ...["## Accounts", tableOf(accountPoints)],
    ...["## Matchmaking", tableOf(matchPoints)],
    ...["## The small service", tableOf(reminderPoints)],
    ...["## Retention", tableOf(retentionPoints)],
    ...["## Migrations", tableOf(migrationPoints)],
  ].join("\n\n");
}

function tableOf(rows: Row[]): string {
  const cells = rows.map(({ dies, leaves, next, seen }) => [dies, inWords(leaves), next, seen]);
  const head = ["dies", "leaves behind", "what happens next", "what is visible from outside"];
  return [head, head.map(() => "---"), ...cells].map((row) => `| ${row.join(" | ")} |`).join("\n");
}

function inWords(counts: Counts): string {
  return Object.entries(counts).map(([what, count]) => `${what}: ${count}`).join(", ") || "nothing";
}

/** Headings and cells, however they are laid out. */
export function rowsOf(text: string): string[][] {
  return text.split("\n")
    .filter((line) => line.startsWith("## ") || line.startsWith("| "))
    .map((line) => line.split("|").map((cell) => cell.trim()))
    .filter((cells) => !cells.some((cell) => /^-+$/.test(cell)));
}

if (import.meta.main) {
  const [introduction] = (await Deno.readTextFile(page)).split("\n## ");
  await Deno.writeTextFile(page, `${introduction}\n${tables()}\n`);
}
