import type { Database } from "../postgres/postgres.ts";
import type { Settlement } from "../queue/job.ts";
import { repairLostEvents } from "./lost_events.ts";
import type { OutboxRow, OutboxTable } from "./outbox_table.ts";
import { republishLost } from "./republish_lost.ts";
import { type RelayOptions, type RelayParts, runRelay } from "./relay.ts";
import type { OpenSource, Published } from "./source.ts";

export interface TableParts extends Omit<RelayParts<OutboxRow>, "openSource"> {
  database: Database;
  outbox: OutboxTable;
  // Called for each published event with the time from its change to its acknowledgement.
  observeDelay?(seconds: number): void;
}

// Publishes the events of a table.
export function relayTable(
  { database, outbox, observeDelay, ...parts }: TableParts,
  options: RelayOptions,
  stop: AbortSignal,
): Promise<void> {
  const openSource = tableSource(database, outbox, observeDelay);
  return runRelay({ ...parts, openSource }, options, stop);
}

export function tableSource(
  database: Database,
  outbox: OutboxTable,
  observeDelay: (seconds: number) => void = () => {},
): OpenSource<OutboxRow> {
  return (options, log) => ({
    ...outbox.jobOn(database, options, (settled, owned) => {
      for (const settlement of settled) {
        if (settlement.kind === "done" && owned.has(settlement.row.id)) {
          observeDelay(delayOf(settlement));
        }
      }
    }),
    loss: {
      compare: (server, stream) => repairLostEvents(database, outbox, server, stream, log),
      republishLate: () => republishLost(database, outbox, log),
    },
  });
}

type Done = Extract<Settlement<OutboxRow, Published>, { kind: "done" }>;

// A republished event counts again, from its change.
function delayOf({ row, result }: Done): number {
  return row.content.age_seconds + (result.ackedAt - row.claimedAt) / 1_000;
}
