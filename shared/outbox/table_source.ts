import type { Database } from "../postgres/postgres.ts";
import type { Log } from "../process/log.ts";
import { repairLostEvents } from "./lost_events.ts";
import type { OutboxTable } from "./outbox_table.ts";
import { republishLost } from "./republish_lost.ts";
import type { LossCheck } from "./source.ts";

export function lossCheck(database: Database, outbox: OutboxTable, log: Log): LossCheck {
  return {
    compare: (server, stream) => repairLostEvents(database, outbox, server, stream, log),
    republishLate: () => republishLost(database, outbox, log),
  };
}
