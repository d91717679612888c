import type { DeadLetter } from "@kenri/shared/operators/dead_letters.ts";
import { deadRows, type DeadTable } from "@kenri/shared/operators/dead_rows.ts";
import type { Operation } from "@kenri/shared/operators/operations.ts";
import { republishDead } from "@kenri/shared/outbox/republish_dead.ts";
import type { Database } from "@kenri/shared/postgres/postgres.ts";
import type { SendBack, SentBack } from "@kenri/shared/operators/send_back.ts";
import type { Wakeup } from "@kenri/shared/process/signals.ts";
import { outbox } from "../outbox.ts";

// The dead letters of the outbox: events that are FAILED.

export function deadEvents(database: Database, wakeRelay: Wakeup): SendBack {
  return {
    layer: "outbox",
    ...deadRows<DeadLetter>(database, deadOutbox),
    sendBack: (dead, operation) => sendBackEvents(database, dead, operation, wakeRelay),
  };
}

const deadOutbox: DeadTable = {
  name: "outbox_events",
  id: "event_id",
  idType: "uuid",
  isDead: "not unfinished and published_at is null", // equivalent to FAILED
  error: "coalesce(last_error, 'unknown')",
  since: "created_at",
  columns: "'outbox' as layer, event_id as id, event_id, attempt_count as attempts, payload",
};

async function sendBackEvents(
  database: Database,
  dead: DeadLetter[],
  operation: Operation,
  wakeRelay: Wakeup,
): Promise<SentBack> {
  const moved = await republishDead(database, outbox, dead.map(({ id }) => id), operation);
  if (moved.length > 0) wakeRelay.trigger();
  return { moved };
}
