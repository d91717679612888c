import { type Database, query } from "../postgres/postgres.ts";
import { type Sql, sql } from "../postgres/sql.ts";
import type { InboxEvent } from "./inbox.ts";

// The store of an inbox whose events lead to one statement. Every database that receives events has
// the table processed_events (event_id, processed_at), whose key decides which of them are new.

// Stores the ids of the events. `also` is what is done with the new ones, in the same statement: a
// part of it that reads new_event (event_id, payload). Returns for each event whether it was new.
export async function storeOnce<Event extends InboxEvent>(
  database: Database,
  events: Event[],
  also: Sql,
): Promise<boolean[]> {
  const stored = await query<{ event_id: string }>(
    database,
    sql`with received as materialized (
  select event_id, payload
  from rows from (
    unnest(${events.map(({ event_id }) => event_id)}::uuid[]),
    jsonb_array_elements(${JSON.stringify(events.map(({ payload }) => payload))})
  ) as message (event_id, payload)
), processed as (
  insert into processed_events (event_id)
  select event_id from received order by event_id -- so that replicas can't deadlock
  on conflict (event_id) do nothing
  returning event_id
), new_event as (
  select *
  from received
  -- PostgreSQL evaluates this condition with a hash, which it would not do for a join.
  where (event_id in (select event_id from processed)) is true
), also as (
  ${also}
)
select event_id from processed`,
  );
  const isNew = new Set(stored.map(({ event_id }) => event_id));
  return events.map(({ event_id }) => isNew.has(event_id));
}
