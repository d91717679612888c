// A change as the API hands it to the batch, and its commit.
import { changeCommand, type CommitOptions } from "../../entitlement/change_entitlement.ts";
import type { Change } from "../../entitlement/entitlement.ts";
import type { OutboxRow } from "../../shared/outbox/outbox_table.ts";
import type { Answer } from "../../shared/commands/answer.ts";
import { commit } from "../../shared/commands/command.ts";
import type { Database } from "../../shared/postgres/postgres.ts";
import type { NewLease, Written } from "../../shared/queue/handover.ts";

export function changeOf(fields: Partial<Change> = {}): Change {
  return {
    action: "GRANT",
    userId: "ann",
    stockKeepingUnit: "book",
    reason: "purchase",
    purchaseId: "p-1",
    caller: "",
    idempotencyKey: crypto.randomUUID(),
    traceId: "trace",
    traceparent: null,
    ...fields,
  };
}

export function commitChanges(
  database: Database,
  changes: Change[],
  options: CommitOptions,
  lease?: NewLease,
): Promise<Written<OutboxRow, Answer[]>> {
  return commit(database, changeCommand(options), changes, lease);
}
