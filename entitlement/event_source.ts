import type { EventSource } from "@kenri/shared/outbox/source.ts";
import { lossCheck } from "@kenri/shared/outbox/table_source.ts";
import type { Database } from "@kenri/shared/postgres/postgres.ts";
import type { Log } from "@kenri/shared/process/log.ts";
import type { Lease } from "@kenri/shared/queue/leases.ts";
import { observePublished } from "./metrics.ts";
import {
  claimEventsRepeatedly,
  keepEvents,
  outbox,
  type OutboxRow,
  settleEvents,
} from "./outbox.ts";

export function eventSource(
  database: Database,
  options: Lease & { pollIntervalMs: number },
  log: Log,
): EventSource<OutboxRow> {
  return {
    claim: claimEventsRepeatedly(database, options),
    settle: async (settled) => {
      const owned = await settleEvents(database, settled);
      observePublished(settled, owned);
      return owned;
    },
    extend: (rows) => keepEvents(database, rows, options.leaseMs),
    loss: lossCheck(database, outbox, log),
  };
}
