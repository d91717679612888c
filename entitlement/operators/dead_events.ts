import { z } from "@hono/zod-openapi";
import type { DeadLetter } from "@kenri/shared/operators/dead_letters.ts";
import { deadRows, type DeadTable } from "@kenri/shared/operators/dead_rows.ts";
import type { Operation } from "@kenri/shared/operators/operations.ts";
import type { Database } from "@kenri/shared/postgres/postgres.ts";
import type { SendBack, SentBack } from "@kenri/shared/operators/send_back.ts";
import type { Wakeup } from "@kenri/shared/process/signals.ts";
import { republishDead } from "../republish/republish_dead.ts";

// The dead letters of the outbox: events that are FAILED.

export function deadEvents(database: Database, wakeRelay: Wakeup): SendBack {
  return {
    layer: "outbox",
    idSchema: z.uuid().transform((id) => id.toLowerCase()),
    ...deadRows<DeadLetter>(database, deadOutbox),
    sendBack: (dead, operation) => sendBackEvents(database, dead, operation, wakeRelay),
  };
}

const deadOutbox: DeadTable = {
  name: "outbox_events",
  id: "event_id",
  idType: "uuid",
  beforeAll: "00000000-0000-0000-0000-000000000000",
  isDead: "not unfinished and published_at is null", // which is to say FAILED
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
  const moved = await republishDead(database, dead.map(({ id }) => id), operation);
  if (moved.length > 0) wakeRelay.trigger();
  return { moved };
}
