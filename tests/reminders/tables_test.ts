// The tables of the organs, which a new service copies, are those that other services have.
import assert from "node:assert/strict";
import { ask } from "../../tools/servers/asking.ts";
import { freshDatabase } from "../support/databases.ts";
import { freshPlace } from "./started.ts";

const tables = {
  account: ["outbox_events", "outbox_attempts", "stream_generations"],
  entitlement: ["idempotency_keys", "outbox_events", "outbox_attempts", "stream_generations"],
  notification: ["processed_events"],
} as const;

for (const service of ["account", "entitlement", "notification"] as const) {
  Deno.test(`the tables of the organs are the same as in the database of ${service}`, async () => {
    await using place = await freshPlace();
    await using other = await freshDatabase(service);
    const [own, theirs] = await Promise.all([
      describe(place.ownerUrl, tables[service]),
      describe(other.ownerUrl, tables[service]),
    ]);
    assert.ok(own.length > tables[service].length);
    assert.deepEqual(own, theirs);
  });
}

/** Columns, indexes and storage options, as PostgreSQL writes them. */
async function describe(ownerUrl: string, names: readonly string[]): Promise<string[]> {
  const rows = await ask<{ line: string }>(
    ownerUrl,
    `select concat_ws(' ', table_name, column_name, data_type, collation_name, is_nullable,
       column_default, generation_expression, identity_generation) as line
     from information_schema.columns where table_name = any($1)
     union all select indexdef from pg_indexes where tablename = any($1)
     union all select concat_ws(' ', relname, reloptions) from pg_class where relname = any($1)
     order by line`,
    [names],
  );
  return rows.map(({ line }) => line);
}
