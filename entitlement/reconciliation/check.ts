import { type Database, query, utc } from "@kenri/shared/postgres/postgres.ts";
import { maxPerCheck, type Receipt } from "@kenri/proto/notification/receipts.ts";
import type { AskReceiver } from "./ask.ts";

// Checks whether every change was received. The audit has one row for each version of each
// entitlement, and the id of the row is the id of the event. So the audit lists every event that
// must have been published, whether or not the outbox still has it.

export interface AuditedEvent {
  event_id: string;
  occurred_at: string;
  user_id: string;
  stock_keeping_unit: string;
  version: number;
}

export interface Row extends AuditedEvent, Record<string, unknown> {
  status: string | null; // null if retention has deleted the row, a day after the publish
  published_seconds_ago: number | null;
  stream_seq: number | null;
}

export type State =
  | "RECEIVED"
  | "IN_FLIGHT" // waits to be published or delivered, or was published a moment ago
  | "DEAD" // a dead letter: FAILED, or no longer delivered by JetStream
  | "MISSING"
  | "TOO_OLD"; // from before the receiver's retention, which has deleted its record

export interface Checked {
  event: AuditedEvent;
  state: State;
}

export interface Position {
  occurred_at: string;
  event_id: string;
}

export const checkedAtOnce = maxPerCheck;

// One page of the audit, in its order.
export async function checkAudit(
  database: Database,
  ask: AskReceiver,
  { after, until, graceSeconds }: { after: Position; until: string; graceSeconds: number },
): Promise<Checked[]> {
  return await check(ask, await findAudited(database, after, until), graceSeconds);
}

// One page of the events that an earlier check has left open.
export async function checkOpen(
  database: Database,
  ask: AskReceiver,
  { after, graceSeconds }: { after: string; graceSeconds: number },
): Promise<Checked[]> {
  return await check(ask, await findOpen(database, after), graceSeconds);
}

async function check(ask: AskReceiver, rows: Row[], graceSeconds: number): Promise<Checked[]> {
  if (rows.length === 0) return [];
  const receipt = await ask(rows.map(({ event_id }) => event_id));
  const stateOf = classifier(receipt, graceSeconds);
  return rows.map((row) => {
    const { event_id, occurred_at, user_id, stock_keeping_unit, version } = row;
    const event = { event_id, occurred_at, user_id, stock_keeping_unit, version };
    return { event, state: stateOf(row) };
  });
}

export function classifier(receipt: Receipt, graceSeconds: number): (row: Row) => State {
  const missing = new Set(receipt.missing);
  const dead = new Set(receipt.dead);
  const { undelivered, delivered_up_to, unsettled, settled_up_to, remembered_since } = receipt;
  return ({ event_id, occurred_at, status, published_seconds_ago, stream_seq }) => {
    if (!missing.has(event_id) && !dead.has(event_id)) return "RECEIVED";
    if (occurred_at < remembered_since) return "TOO_OLD";
    switch (status) {
      case "PENDING":
      case "IN_FLIGHT":
        return "IN_FLIGHT";
      case "FAILED":
        return "DEAD";
      case "PUBLISHED": {
        const waits = undelivered > 0 && (stream_seq ?? 0) > delivered_up_to;
        if (waits || (published_seconds_ago ?? 0) < graceSeconds) return "IN_FLIGHT";
        if (dead.has(event_id)) return "DEAD";
        // The server does not report which messages it will redeliver, only that all up to
        // settled_up_to are settled. If nothing is unsettled, that holds for every message.
        return unsettled > 0 && (stream_seq ?? 0) > settled_up_to ? "IN_FLIGHT" : "MISSING";
      }
      default: // its sequence is no longer known, so first every message has to be delivered
        if (undelivered > 0) return "IN_FLIGHT";
        return dead.has(event_id) ? "DEAD" : "MISSING";
    }
  };
}

const outboxColumns = `row.status, row.stream_seq,
       extract(epoch from now() - row.published_at)::float8 as published_seconds_ago`;

function findAudited(
  database: Database,
  { occurred_at, event_id }: Position,
  until: string,
): Promise<Row[]> {
  return query<Row>(
    database,
    `select audit.audit_id as event_id, ${utc("audit.occurred_at")} as occurred_at, audit.user_id,
       audit.stock_keeping_unit, (audit.detail->>'version')::bigint as version, ${outboxColumns}
     from entitlement_audit audit
     left join outbox_events row on row.event_id = audit.audit_id
     where audit.occurred_at >= $1
       and (audit.occurred_at, audit.audit_id) > ($1, $2)
       and audit.occurred_at < $3
     order by audit.occurred_at, audit.audit_id
     limit $4`,
    [occurred_at, event_id, until, checkedAtOnce],
  );
}

function findOpen(database: Database, after: string): Promise<Row[]> {
  return query<Row>(
    database,
    `select open.event_id, ${utc("open.occurred_at")} as occurred_at, open.user_id,
       open.stock_keeping_unit, open.version, ${outboxColumns}
     from unreceived_events open
     left join outbox_events row on row.event_id = open.event_id
     where open.event_id > $1
     order by open.event_id
     limit $2`,
    [after, checkedAtOnce],
  );
}

// The time this many seconds ago, by the clock of the database.
export async function timeBefore(database: Database, seconds: number): Promise<string> {
  const [found] = await query<{ time: string }>(
    database,
    `select ${utc("now() - make_interval(secs => $1)")} as time`,
    [seconds],
  );
  return found?.time ?? "";
}
