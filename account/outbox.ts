import { outboxTable } from "@kenri/shared/outbox/outbox_table.ts";

export const outbox = outboxTable({
  name: "outbox_events",
  attempts: "outbox_attempts",
  layer: "account",
});
