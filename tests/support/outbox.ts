// Inserts rows into the outbox as the API does, and reads their state.
import assert from "node:assert/strict";
import { outbox } from "../../entitlement/outbox.ts";
import type { OutboxRow } from "../../shared/outbox/outbox_table.ts";
import type { Database } from "../../shared/postgres/postgres.ts";
import { uuidv7 } from "../../shared/process/uuid.ts";
import { ask } from "./entitlement.ts";
import { readStream } from "./streams.ts";
import { until } from "../../tools/servers/wait.ts";
import { countRows } from "../../tools/servers/asking.ts";

export interface NewEvent {
  key: string;
  version: number;
  payload?: unknown; // other than the API would have written
  traceparent?: string;
}

let inserted = 0; // rows get ascending times, one microsecond apart

export async function insertEvents(ownerUrl: string, events: NewEvent[]): Promise<string[]> {
  const rows = events.map((event) => ({ ...event, event_id: uuidv7(), position: inserted++ }))
    .map(({ key, version, payload, event_id, position, traceparent }) => ({
      event_id,
      aggregate_key: key,
      traceparent,
      position,
      payload: payload === undefined ? goodPayload(event_id, key, version) : payload,
    }));
  await ask(
    ownerUrl,
    `insert into outbox_events (event_id, event_type, aggregate_key, payload, traceparent, created_at)
     select event_id, 'EntitlementGranted', aggregate_key, coalesce(payload, 'null'), traceparent,
       date_trunc('day', now()) - interval '1 day' + position * interval '1 microsecond'
     from json_to_recordset($1) as (
       event_id uuid, aggregate_key text, payload jsonb, traceparent text, position int)`,
    [JSON.stringify(rows)],
  );
  return rows.map(({ event_id }) => event_id);
}

export function goodPayload(id: string, key: string, version: number): Record<string, unknown> {
  const [user_id, stock_keeping_unit] = key.split(":");
  return {
    event_id: id,
    event_type: "EntitlementGranted",
    occurred_at: "2026-01-02T03:04:05.678901Z",
    user_id,
    stock_keeping_unit,
    source: "purchase",
    source_id: "p-1",
    version,
    trace_id: "0af7651916cd43dd8448eb211c80319c",
  };
}

// Versions 1 to `versions` for each key, in the order in which concurrent changes write them.
export function manyEvents({ keys, versions }: { keys: number; versions: number }): NewEvent[] {
  return Array.from({ length: keys * versions }, (_, i) => ({
    key: `user-${i % keys}:sku`,
    version: Math.floor(i / keys) + 1,
  }));
}

export interface OutboxState {
  event_id: string;
  aggregate_key: string;
  status: "PENDING" | "IN_FLIGHT" | "PUBLISHED" | "FAILED";
  attempt_count: number;
  last_error: string | null;
  stream_generation: number;
  stream_seq: number;
  published_at: Date | null;
}

export function outboxRows(ownerUrl: string): Promise<OutboxState[]> {
  return ask<OutboxState>(
    ownerUrl,
    `select event_id, aggregate_key, status, attempt_count, last_error, published_at,
       stream_generation::int, stream_seq::int
     from outbox_events
     order by created_at`,
  );
}

export async function untilAll(
  ownerUrl: string,
  ...statuses: OutboxState["status"][]
): Promise<OutboxState[]> {
  await until(`all rows are ${statuses.join(" or ")}`, async () => {
    return await countRows(ownerUrl, "outbox_events where status <> all ($1)", [statuses]) === 0;
  }, 60_000);
  return await outboxRows(ownerUrl);
}

export function countOf(ownerUrl: string, status: OutboxState["status"]): Promise<number> {
  return countRows(ownerUrl, "outbox_events where status = $1", [status]);
}

export interface StoredEvent {
  seq: number;
  id: string;
  key: string;
  headers: Record<string, string>;
  body: Uint8Array;
}

/** All events of the stream, in its order. */
export async function storedEvents(url: string, stream: string): Promise<StoredEvent[]> {
  return (await readStream(url, stream)).map(({ seq, data, header }) => {
    const headers = Object.fromEntries(header.keys().map((name) => [name, header.get(name)]));
    const [id = "", key = ""] = [headers["Nats-Msg-Id"], headers["aggregate_key"]];
    return { seq, id, key, headers, body: data };
  });
}

// Fails unless the stream has each row once, and those of one key in the order of their writing.
export function assertOnceAndInOrder(stored: StoredEvent[], rows: OutboxState[]): void {
  assert.equal(stored.length, rows.length, "each event is in the stream once");
  const written = Map.groupBy(rows, ({ aggregate_key }) => aggregate_key);
  const arrived = Map.groupBy(stored, ({ key }) => key);
  for (const [key, rowsOfKey] of written) {
    const ids = (arrived.get(key) ?? []).map(({ id }) => id);
    assert.deepEqual(ids, rowsOfKey.map(({ event_id }) => event_id), `the events of ${key}`);
  }
}

// Fails unless every row is PUBLISHED and the stream has its event at the row's sequence.
export function assertAllStored(stored: StoredEvent[], rows: OutboxState[]): void {
  const idAt = new Map(stored.map(({ seq, id }) => [seq, id]));
  for (const { event_id, status, stream_seq } of rows) {
    assert.equal(status, "PUBLISHED");
    assert.equal(idAt.get(stream_seq), event_id);
  }
}

/** Settles claimed rows as if a stream had acknowledged them. */
export async function publishAll(database: Database, rows: OutboxRow[]): Promise<void> {
  const result = { generation: 1, sequence: 1, ackedAt: performance.now() };
  await outbox.settle(database, rows.map((row) => ({ row, kind: "done", result })));
}
