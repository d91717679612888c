// deno task queue:statements: writes shared/queue/statements.sql, in which each statement of each
// leased table can be read whole, found by a search and pasted into psql. --check only compares.
import type { Database } from "@kenri/shared/postgres/postgres.ts";
import { printProblem } from "@kenri/shared/process/terminal.ts";
import type { LeasedTable } from "@kenri/shared/queue/leased_table.ts";
import { outbox } from "@kenri/entitlement/outbox.ts";
import { notifications } from "@kenri/notification/deliveries.ts";
import { root } from "./root.ts";

const file = "shared/queue/statements.sql";

const head = `-- The statements of the leased tables, as PostgreSQL gets them. Made by
-- deno task queue:statements from claims.ts, settlements.ts and the descriptions of the tables.
`;

export async function queueStatements(): Promise<string> {
  const parts = [
    ...await statementsOf(outbox),
    ...await statementsOf(notifications),
  ];
  return `${head}\n${parts.join("\n")}`;
}

// Calls each function of the table with a database that only notes what it is asked.
async function statementsOf<Content extends object, Result>(
  table: LeasedTable<Content, Result>,
): Promise<string[]> {
  const noted: string[] = [];
  let step = "";
  const database = {
    query: ({ text }: { text: string }) => {
      noted.push(`-- name: ${table.description.name}.${step}\n${text};\n`);
      return Promise.resolve({ rows: [] });
    },
  } as unknown as Database;
  const row = { id: "", key: "", token: "", attempts: 0, takenOver: false, claimedAt: 0 };
  const held = { row: { ...row, content: {} as Content }, result: {} as Result };
  step = "claim";
  await table.claim(database, { worker: "", leaseMs: 1 }, 1);
  step = "done";
  await table.settle(database, [{ ...held, kind: "done" }]);
  step = "retry";
  await table.settle(database, [{ ...held, kind: "retry", error: "", delayMs: 1 }]);
  step = "failed";
  await table.settle(database, [{ ...held, kind: "failed", error: "", attempted: true }]);
  step = "released";
  await table.settle(database, [{ ...held, kind: "released" }]);
  step = "extend";
  await table.extend(database, [held.row], 1);
  if (table.description.order.isDueTime) {
    step = "next_due";
    await table.nextDueMs(database);
  }
  return noted;
}

if (import.meta.main) {
  const path = `${root}${file}`;
  const text = await queueStatements();
  if (!Deno.args.includes("--check")) await Deno.writeTextFile(path, text);
  else if (await Deno.readTextFile(path) !== text) {
    printProblem(`${file} is out of date: deno task queue:statements`);
    Deno.exit(1);
  }
}
