// An outbox that belongs to no service: a table with events of two types, each with a subject and
// an encoding of its own.
import { announce } from "../../shared/outbox/announce.ts";
import type { EventType, EventTypes } from "../../shared/outbox/event_types.ts";
import { type OutboxRow, outboxTable } from "../../shared/outbox/outbox_table.ts";
import { tableSource } from "../../shared/outbox/table_source.ts";
import { type Database, openDatabase, transaction } from "../../shared/postgres/postgres.ts";
import { sql } from "../../shared/postgres/sql.ts";
import { uuidv7 } from "../../shared/process/uuid.ts";
import { ask } from "../support/entitlement.ts";
import type { FreshPlace } from "../support/places.ts";
import { freshPlace, type RunningRelay, startRelayFrom } from "../support/relays.ts";

export const counted = outboxTable({ name: "counted_events", attempts: "counted_attempts" });

export interface CountedPlace extends FreshPlace {
  database: Database;
}

/** Its database also has the tables for the lives of a stream and for operations. */
export async function countedPlace(): Promise<CountedPlace> {
  const place = await freshPlace();
  await ask(
    place.ownerUrl,
    "create table counted_events (like outbox_events including all)",
  );
  await ask(
    place.ownerUrl,
    "create table counted_attempts (like outbox_attempts including all)",
  );
  const database = openDatabase(place.ownerUrl, "test");
  return {
    ...place,
    database,
    [Symbol.asyncDispose]: async () => {
      await database.end();
      await place[Symbol.asyncDispose]();
    },
  };
}

const utf8 = new TextEncoder();

export function countedTypes({ subject }: CountedPlace): EventTypes {
  return new Map<string, EventType>([
    ["Counted", {
      subject: `${subject}.counted`,
      encode: (_, { count }) => ({ body: utf8.encode(`${count}`) }),
    }],
    ["Named", {
      subject: `${subject}.named`,
      encode: (id, { count }) => ({
        body: utf8.encode(JSON.stringify({ id, count })),
        headers: { format: "json" },
      }),
    }],
  ]);
}

export function startCounted(
  place: CountedPlace,
  types: EventTypes = countedTypes(place),
): RunningRelay<OutboxRow> {
  return startRelayFrom(place, tableSource(place.database, counted), types);
}

export interface CountedEvent {
  type: string;
  key: string;
  count: number;
}

/** Announces events as a change would, and returns their ids. */
export async function announceCounted(
  { database }: CountedPlace,
  events: CountedEvent[],
): Promise<string[]> {
  const rows = events.map((event) => ({ ...event, event_id: uuidv7() }));
  const selected = sql`select event_id, type as event_type, key as aggregate_key,
      jsonb_build_object('occurred_at', now(), 'trace_id', 't-1', 'count', count) as payload,
      null as traceparent, now() + count * interval '1 microsecond' as created_at
    from json_to_recordset(${JSON.stringify(rows)}) as event (
      event_id uuid, type text, key text, count int)`;
  await transaction(database, (tx) => announce(tx, counted, selected, undefined));
  return rows.map(({ event_id }) => event_id);
}
