import type { DeadTable } from "@kenri/shared/operators/dead_rows.ts";
import { deadLayer, type SendBack } from "@kenri/shared/operators/send_back.ts";
import { republishDead } from "@kenri/shared/outbox/republish_dead.ts";
import type { Database } from "@kenri/shared/postgres/postgres.ts";
import type { Wakeup } from "@kenri/shared/process/signals.ts";
import { outbox } from "../outbox.ts";

// The dead letters of the outbox: events that are FAILED.

export const deadOutbox: DeadTable = {
  layer: outbox.layer,
  name: "outbox_events",
  id: "event_id",
  idType: "uuid",
  isDead: "not unfinished and published_at is null", // equivalent to FAILED
  error: "coalesce(last_error, 'unknown')",
  since: "created_at",
  columns: "event_id, attempt_count as attempts, payload",
};

export function deadEvents(database: Database, wakeRelay: Wakeup): SendBack {
  return deadLayer(
    database,
    deadOutbox,
    wakeRelay,
    (ids, operation) => republishDead(database, outbox, ids, operation),
  );
}
