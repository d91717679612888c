import { z } from "@hono/zod-openapi";
import { countErrors, type DeadLetters } from "@kenri/shared/operators/dead_letters.ts";
import {
  countedAtMost,
  findOldestWaiting,
  serviceStatusRoute,
  statusFields,
  waitingRowFields,
} from "@kenri/shared/operators/status.ts";
import { type Database, utc } from "@kenri/shared/postgres/postgres.ts";
import { countBacklog } from "@kenri/shared/queue/backlog.ts";
import type { Handler } from "hono";
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

type OwnCounts = Pick<OutboxStatus, "last_published_at" | "unreceived">;
const ownColumns = [
  `(select ${utc("published_at")}
        from outbox_events
        where published_at is not null
        order by outbox_events.published_at desc
        limit 1) as last_published_at`,
  "(select count(*) from (select from unreceived_events limit $1) as found) as unreceived",
];

export function status(
  database: Database,
  tables: DeadLetters[],
  natsIsAvailable: () => boolean,
): Handler {
  return async () => {
    const [backlog, oldest, [state], errors] = await Promise.all([
      countBacklog<OwnCounts>(database, outbox, countedAtMost, ownColumns),
      findOldestWaiting<z.infer<typeof rowSchema>>(database, outbox, "event_id"),
      findState(database),
      countErrors(tables),
    ]);
    return Response.json({ ...backlog, nats: natsIsAvailable(), errors, ...state, oldest });
  };
}
