// deno task queue:statements: writes shared/queue/statements.sql, in which each statement of each
// leased table can be read whole, found by a search and pasted into psql. --check only compares.
import type { Database } from "@kenri/shared/postgres/postgres.ts";
import { printProblem } from "@kenri/shared/process/terminal.ts";
import type { LeasedTable } from "@kenri/shared/queue/leased_table.ts";
import { modulesBeside } from "./module_graph.ts";
import { root } from "./root.ts";
import { mainFile, serviceNames } from "./services.ts";

const file = "shared/queue/statements.sql";

const head = `-- The statements of the leased tables, as PostgreSQL gets them. Made by
-- deno task queue:statements from claims.ts, settlements.ts and the descriptions of the tables.
`;

type Table = LeasedTable<object, unknown>;

export async function queueStatements(): Promise<string> {
  const parts: string[] = [];
  for (const service of serviceNames) {
    for (const table of await tablesOf(mainFile(service))) parts.push(...await statementsOf(table));
  }
  return `${head}\n${parts.join("\n")}`;
}

// A service exports its tables from the modules in its folder.
async function tablesOf(main: string): Promise<Table[]> {
  const tables = new Map<string, Table>();
  for (const url of await modulesBeside(main)) {
    for (const value of Object.values(await import(url))) {
      if (isTable(value)) tables.set(value.description.name, value);
    }
  }
  return [...tables.values()];
}

function isTable(value: unknown): value is Table {
  return typeof value === "object" && value !== null && "claimRepeatedly" in value;
}

// Calls each function of the table with a database that only notes what it is asked.
async function statementsOf(table: Table): Promise<string[]> {
  const noted: string[] = [];
  let step = "";
  const database = {
    query: ({ text }: { text: string }) => {
      noted.push(`-- name: ${table.description.name}.${step}\n${text};\n`);
      return Promise.resolve({ rows: [] });
    },
  } as unknown as Database;
  const row = { id: "", key: "", token: "", attempts: 0, takenOver: false, claimedAt: 0 };
  const held = { row: { ...row, content: {} }, result: {} };
  step = "claim";
  await table.claim(database, { worker: "", leaseMs: 1 }, 1);
  step = "done";
  await table.settle(database, [{ ...held, kind: "done" }]);
  step = "retry";
  await table.settle(database, [{ ...held, kind: "retry", error: "", delayMs: 1 }]);
  step = "failed";
  await table.settle(database, [{ ...held, kind: "failed", error: "", attempted: true }]);
  step = "released";
  await table.settle(database, [{ row: held.row, kind: "released" }]);
  if (table.description.attempt) {
    step = "put_off";
    await table.settle(database, [{ ...held, kind: "released", error: "" }]);
  }
  step = "extend";
  await table.extend(database, [held.row], 1);
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
