import { z } from "@hono/zod-openapi";
import { countErrors, type DeadLetters } from "@kenri/shared/operators/dead_letters.ts";
import {
  countedAtMost,
  findOldestWaiting,
  serviceStatusRoute,
  statusFields,
  waitingRowFields,
} from "@kenri/shared/operators/status.ts";
import type { Database } from "@kenri/shared/postgres/postgres.ts";
import type { Handler } from "hono";
import { countBacklog } from "../backlog.ts";
import { outbox } from "../outbox.ts";
import { findState } from "../reconciliation/on_demand.ts";

const rowSchema = z.object({ event_id: z.uuid(), ...waitingRowFields });

const statusSchema = z.object({
  ...statusFields,
  last_published_at: z.string().nullable(),
  proven_until: z.string(),
  checked_at: z.string(),
  unreceived: z.int(),
  oldest: z.array(rowSchema),
}).openapi("OutboxStatus");

export type OutboxStatus = z.infer<typeof statusSchema>;

export const statusRoute = serviceStatusRoute("entitlement", "events", statusSchema);

export function status(
  database: Database,
  tables: DeadLetters[],
  natsIsAvailable: () => boolean,
): Handler {
  return async () => {
    const [backlog, oldest, [state], errors] = await Promise.all([
      countBacklog(database, countedAtMost),
      findOldestWaiting<z.infer<typeof rowSchema>>(database, outbox, "event_id"),
      findState(database),
      countErrors(tables),
    ]);
    const { waiting, oldest_waiting_seconds, last_published_at, unreceived } = backlog;
    const counts = { waiting, oldest_waiting_seconds, last_published_at, unreceived };
    return Response.json({ ...counts, nats: natsIsAvailable(), errors, ...state, oldest });
  };
}
