import { z } from "@hono/zod-openapi";
import { countErrors, type DeadLetters } from "@kenri/shared/operators/dead_letters.ts";
import { serviceStatusRoute, statusFields, waitingRows } from "@kenri/shared/operators/status.ts";
import { type Database, query, utc } from "@kenri/shared/postgres/postgres.ts";
import { sql } from "@kenri/shared/postgres/sql.ts";
import type { Handler } from "hono";
import { outbox } from "../outbox.ts";

const events = waitingRows(outbox, { event_id: z.uuid() });

const countedAtMost = 10_000;

const statusSchema = z.object({
  ...events.fields,
  ...statusFields,
  active_admins: z.int().openapi({ description: `Counted up to ${countedAtMost}` }),
  ended_sessions: z.int().openapi({
    description: `Sessions that ended before they expired, counted up to ${countedAtMost}`,
  }),
  last_published_at: z.string().nullable(),
}).openapi("AccountsStatus");

export type AccountsStatus = z.infer<typeof statusSchema>;

export const statusRoute = serviceStatusRoute("account", "events", statusSchema);

export function status(
  database: Database,
  tables: DeadLetters[],
  natsIsAvailable: () => boolean,
): Handler {
  return async () => {
    const [waiting, [counts], errors] = await Promise.all([
      events.read(database),
      findCounts(database),
      countErrors(tables),
    ]);
    return Response.json({ ...waiting, ...counts, nats: natsIsAvailable(), errors });
  };
}

function findCounts(database: Database): Promise<Record<string, unknown>[]> {
  return query(
    database,
    sql`
    select
      (select count(*)
       from (
         select
         from account_roles
         join users using (user_id)
         where role = 'ADMIN'
           and status = 'ACTIVE'
         limit ${countedAtMost}
       ) as found) as active_admins,
      (select count(*)
       from (
         select
         from ended_sessions
         where expires_at > now()
         limit ${countedAtMost}
       ) as found) as ended_sessions,
      (select ${utc(sql`published_at`)}
       from outbox_events
       where published_at is not null
       order by outbox_events.published_at desc
       limit 1) as last_published_at`,
  );
}
