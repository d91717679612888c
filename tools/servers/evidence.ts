// Keeps all output of a test run, which is searched for planted secrets at the end.
import { ask } from "./asking.ts";

const folder = Deno.env.get("KENRI_TEST_EVIDENCE");

export function keep(what: string, text: string): void {
  if (folder) {
    Deno.writeTextFileSync(`${folder}/${what}-${Deno.pid}`, `${text}\n`, { append: true });
  }
}

/** Keeps the errors that are stored in the database, before it is dropped. */
export async function keepErrors(ownerUrl: string): Promise<void> {
  if (!folder) return;
  try {
    const columns = await ask<{ table_name: string; column_name: string }>(
      ownerUrl,
      `select table_name, column_name from information_schema.columns
       where table_schema = 'public'
         and column_name in ('last_error', 'last_error_msg', 'error', 'error_message', 'reason', 'who',
           'items')`,
    );
    for (const { table_name: table, column_name: column } of columns) {
      const rows = await ask<{ text: string }>(
        ownerUrl,
        `select distinct ${column}::text as text from ${table} where ${column} is not null limit 1000`,
      );
      for (const { text } of rows) keep("tables", text);
    }
  } catch { /* A test may have left it in pieces. */ }
}
