import { listOf } from "@kenri/shared/queue/leases.ts";
import { eventsChecked, eventsMended } from "../metrics.ts";
import { newOperation } from "@kenri/shared/operators/operations.ts";
import { type Database, query } from "@kenri/shared/postgres/postgres.ts";
import type { Wakeup } from "@kenri/shared/process/signals.ts";
import { mendEvents } from "./put_back.ts";
import type { AuditedEvent, Checked, State } from "./check.ts";

// What follows from a check: what was received is closed, what was not is kept open until it is, and
// what is missing is put back to be published.

export interface SettleParts {
  database: Database;
  wakeRelay: Wakeup;
}

export interface Mender {
  who: string;
  reason: string;
  maxMends: number; // of one event; what is missing after so many asks for a person
}

// Returns the ids of those that were put back.
export async function settleChecked(
  { database, wakeRelay }: SettleParts,
  page: Checked[],
  mender: Mender,
): Promise<Set<string>> {
  for (const [state, { length }] of Map.groupBy(page, ({ state }) => state)) {
    eventsChecked.inc({ state }, length);
  }
  const idsOf = (...states: State[]) => eventsOf(page, states).map(({ event_id }) => event_id);
  await closeReceived(database, idsOf("RECEIVED", "TOO_OLD"));
  await keepOpen(database, page.filter(({ state }) => state === "MISSING" || state === "DEAD"));
  const mendable = new Set(await findMendable(database, idsOf("MISSING"), mender.maxMends));
  const toMend = eventsOf(page, ["MISSING"]).filter(({ event_id }) => mendable.has(event_id));
  const mended = await mendEvents(database, toMend, newOperation(mender));
  if (mended.length > 0) wakeRelay.trigger();
  eventsMended.inc(mended.length);
  return new Set(mended);
}

function eventsOf(page: Checked[], states: State[]): AuditedEvent[] {
  return page.filter(({ state }) => states.includes(state)).map(({ event }) => event);
}

// Most often none is open, and then the look at the key is all it costs.
async function closeReceived(database: Database, eventIds: string[]): Promise<void> {
  if (eventIds.length === 0) return;
  await query(
    database,
    `delete from unreceived_events where event_id = any($1::uuid[])`,
    [listOf(eventIds)],
  );
}

async function keepOpen(database: Database, found: Checked[]): Promise<void> {
  if (found.length === 0) return;
  await query(
    database,
    `insert into unreceived_events as open
       (event_id, occurred_at, user_id, stock_keeping_unit, version, state)
     select event_id, occurred_at, user_id, stock_keeping_unit, version, state
     from json_to_recordset($1) as (
       event_id uuid, occurred_at timestamptz, user_id text, stock_keeping_unit text,
       version bigint, state text)
     order by event_id
     on conflict (event_id) do update set state = excluded.state
     where open.state <> excluded.state`,
    [JSON.stringify(found.map(({ event, state }) => ({ ...event, state })))],
  );
}

async function findMendable(
  database: Database,
  ids: string[],
  maxMends: number,
): Promise<string[]> {
  if (ids.length === 0) return [];
  const rows = await query<{ event_id: string }>(
    database,
    `select event_id
     from unreceived_events
     where event_id = any($1::uuid[])
       and mends < $2`,
    [listOf(ids), maxMends],
  );
  return rows.map(({ event_id }) => event_id);
}
