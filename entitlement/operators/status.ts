import { z } from "@hono/zod-openapi";
import { countErrors, type DeadLetters } from "@kenri/shared/operators/dead_letters.ts";
import { serviceStatusRoute, statusFields, waitingRows } from "@kenri/shared/operators/status.ts";
import { type Database, query, utc } from "@kenri/shared/postgres/postgres.ts";
import type { Handler } from "hono";
import { outbox } from "../outbox.ts";
import { reservations } from "../points/reservations.ts";
import { findState } from "../reconciliation/on_demand.ts";
import { findUpcoming } from "./points/upcoming.ts";

const events = waitingRows(outbox, { event_id: z.uuid() });
const due = waitingRows(reservations, { reservation_id: z.uuid() }, { reservation_id: "id" });

const upcomingAtMost = 10_000;

const statusSchema = z.object({
  ...events.fields,
  ...statusFields,
  reservations: z.object({
    ...due.fields,
    upcoming: z.int().openapi({
      description: `Those whose time has not come, counted up to ${upcomingAtMost}`,
    }),
    next_due_at: z.string().nullable(),
  }).openapi({ description: "Those that are due wait, the longest first" }),
  last_published_at: z.string().nullable(),
  proven_until: z.string(),
  checked_at: z.string(),
  unreceived: z.int(),
}).openapi("OutboxStatus");

export type OutboxStatus = z.infer<typeof statusSchema>;

export const statusRoute = serviceStatusRoute("entitlement", "events", statusSchema);

export function status(
  database: Database,
  tables: DeadLetters[],
  natsIsAvailable: () => boolean,
): Handler {
  return async () => {
    const [waiting, dueNow, upcoming, [counts], [state], errors] = await Promise.all([
      events.read(database),
      due.read(database),
      findUpcoming(database, upcomingAtMost),
      findCounts(database),
      findState(database),
      countErrors(tables),
    ]);
    return Response.json({
      ...waiting,
      reservations: { ...dueNow, ...upcoming },
      ...counts,
      ...state,
      nats: natsIsAvailable(),
      errors,
    });
  };
}

function findCounts(database: Database): Promise<Record<string, unknown>[]> {
  return query(
    database,
    `select
       (select ${utc("published_at")}
        from outbox_events
        where published_at is not null
        order by outbox_events.published_at desc
        limit 1) as last_published_at,
       (select count(*) from (select from unreceived_events limit 10000) as found) as unreceived`,
  );
}
