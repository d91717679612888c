import { listOf } from "@kenri/shared/postgres/sql.ts";
import { eventsChecked, eventsRepublished } from "../metrics.ts";
import { newOperation } from "@kenri/shared/operators/operations.ts";
import { type Database, query } from "@kenri/shared/postgres/postgres.ts";
import type { Wakeup } from "@kenri/shared/process/signals.ts";
import { republishUnreceived } from "./republish_unreceived.ts";
import type { AuditedEvent, Checked, State } from "./check.ts";

// What follows from a check: an event that was received is closed, one that was not stays open
// until it is, and one that is missing is republished.

export interface SettleParts {
  database: Database;
  wakeRelay: Wakeup;
}

export interface RepublishLimits {
  who: string;
  reason: string;
  maxPerEvent: number; // an event that is still missing after this many needs an operator
}

// Returns the ids of the events that were republished.
export async function settleChecked(
  { database, wakeRelay }: SettleParts,
  page: Checked[],
  limits: RepublishLimits,
): Promise<Set<string>> {
  for (const [state, { length }] of Map.groupBy(page, ({ state }) => state)) {
    eventsChecked.inc({ state }, length);
  }
  const idsOf = (...states: State[]) => eventsOf(page, states).map(({ event_id }) => event_id);
  await closeReceived(database, idsOf("RECEIVED", "TOO_OLD"));
  await keepOpen(database, page.filter(({ state }) => state === "MISSING" || state === "DEAD"));
  const allowed = new Set(await findAllowed(database, idsOf("MISSING"), limits.maxPerEvent));
  const missing = eventsOf(page, ["MISSING"]).filter(({ event_id }) => allowed.has(event_id));
  const republished = await republishUnreceived(database, missing, newOperation(limits));
  if (republished.length > 0) wakeRelay.trigger();
  eventsRepublished.inc(republished.length);
  return new Set(republished);
}

function eventsOf(page: Checked[], states: State[]): AuditedEvent[] {
  return page.filter(({ state }) => states.includes(state)).map(({ event }) => event);
}

// Most often none of them is open, and then this costs only the look-ups of the keys.
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

// Which of these events were republished less often than allowed.
async function findAllowed(
  database: Database,
  ids: string[],
  maxPerEvent: number,
): Promise<string[]> {
  if (ids.length === 0) return [];
  const rows = await query<{ event_id: string }>(
    database,
    `select event_id
     from unreceived_events
     where event_id = any($1::uuid[])
       and mends < $2`,
    [listOf(ids), maxPerEvent],
  );
  return rows.map(({ event_id }) => event_id);
}
