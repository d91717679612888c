import { outboxTable } from "@kenri/shared/outbox/outbox_table.ts";
import { sql } from "@kenri/shared/postgres/sql.ts";

export const outbox = outboxTable({
  name: "outbox_events",
  attempts: "outbox_attempts",
  // A row that was finished before migration 0007 has a key of the old form, and would not be
  // ordered with rows that were written since.
  keyOf: sql`aggregate_key_of(row.payload->>'user_id', row.payload->>'stock_keeping_unit')`,
});
