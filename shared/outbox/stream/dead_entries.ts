import { z } from "@hono/zod-openapi";
import type { DeadLetter, ErrorCount } from "../../operators/dead_letters.ts";
import type { FindOperations, OperationRecord } from "../../operators/operation_log.ts";
import type { Operation } from "../../operators/operations.ts";
import type { SendBack, SentBack } from "../../operators/send_back.ts";
import type { Wakeup } from "../../process/signals.ts";
import type { MakeChange } from "../../redis/confirmed.ts";
import { scriptOf } from "../../redis/script.ts";
import sendBack from "./send_back.lua" with { type: "text" };
import {
  entriesOf,
  type Entry,
  eventIn,
  type NamedStream,
  redisTime,
  type StoredEvents,
  timeOf,
  toEntries,
} from "./stored_events.ts";

// The dead letters of a stream source, as a layer like those of tables. The id of one is that of its
// entry with the name of its stream.

export interface DeadParts extends StoredEvents {
  layer: string;
  change: MakeChange;
  wake: Wakeup; // of the relay
}

const script = scriptOf("send_back", sendBack);
export const deadScripts = [script];

export const operationsKept = "1000"; // of each stream

export function deadEntries(parts: DeadParts): SendBack {
  return {
    layer: parts.layer,
    idSchema: z.string().regex(/^\d{1,15}-\d{1,10}-[\w-]{1,64}$/),
    find: ({ after, error, limit }) => find(parts, after, error, limit),
    findByIds: (ids) => findByIds(parts, ids),
    countByError: (limit) => countByError(parts, limit),
    sendBack: (dead, operation) => moveBack(parts, dead.map(({ id }) => id), operation),
  };
}

interface Position {
  entry: string;
  name: string;
}

function positionOf(id: string): Position {
  const [, entry = "", name = ""] = /^(\d+-\d+)-(.*)$/.exec(id) ?? [];
  return { entry, name };
}

// By time, and then by the name of the stream.
function compare(a: Position, b: Position): number {
  const numberOf = ({ entry }: Position) => Number(entry.split("-")[1]);
  return timeOf(a.entry) - timeOf(b.entry) || numberOf(a) - numberOf(b) ||
    (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);
}

async function find(
  parts: DeadParts,
  after: string | undefined,
  error: string | undefined,
  limit: number,
): Promise<DeadLetter[]> {
  const from = after === undefined ? undefined : positionOf(after);
  const now = await redisTime(parts.redis);
  const found = await Promise.all(parts.streams.map(async (stream) => {
    const letters: DeadLetter[] = [];
    for await (const entry of entriesOf(parts.redis, stream.dead, from?.entry)) {
      const position = { entry: entry.entry, name: stream.name };
      if (from && compare(position, from) <= 0) continue;
      const letter = toDeadLetter(parts, stream, entry, now);
      if (error === undefined || letter.error === error) letters.push(letter);
      if (letters.length === limit) break;
    }
    return letters;
  }));
  return inOrder(found.flat()).slice(0, limit);
}

async function findByIds(parts: DeadParts, ids: string[]): Promise<DeadLetter[]> {
  const now = await redisTime(parts.redis);
  const found = await Promise.all(
    ids.map(positionOf).map(async ({ entry, name }) => {
      const stream = parts.streams.find((one) => one.name === name);
      if (!stream) return [];
      const reply = await parts.redis.command(["XRANGE", stream.dead, entry, entry]);
      return toEntries(reply).map((one) => toDeadLetter(parts, stream, one, now));
    }),
  );
  return inOrder(found.flat());
}

function inOrder(letters: DeadLetter[]): DeadLetter[] {
  return letters.sort((a, b) => compare(positionOf(a.id), positionOf(b.id)));
}

function toDeadLetter(
  parts: DeadParts,
  { name, dead }: NamedStream,
  { entry, atMs, fields }: Entry,
  now: number,
): DeadLetter {
  const { dead_error, dead_attempts, dead_entry: _, ...payload } = fields;
  return {
    layer: parts.layer,
    id: `${entry}-${name}`,
    event_id: eventIn(parts, dead, fields)?.id ?? null,
    error: dead_error ?? "unknown",
    since: new Date(atMs).toISOString(),
    age_seconds: (now - atMs) / 1_000,
    attempts: Number(dead_attempts ?? 0),
    payload,
  };
}

async function countByError(parts: DeadParts, limit: number): Promise<ErrorCount[]> {
  const counts = new Map<string, ErrorCount>();
  for (const { dead } of parts.streams) {
    let left = limit;
    for await (const { atMs, fields } of entriesOf(parts.redis, dead)) {
      const { dead_error: error = "unknown" } = fields;
      const at = new Date(atMs).toISOString();
      const { count, oldest } = counts.get(error) ?? { count: 0, oldest: at };
      counts.set(error, { error, count: count + 1, oldest: oldest < at ? oldest : at });
      if (--left === 0) break;
    }
  }
  return [...counts.values()].sort((a, b) => b.count - a.count || (a.error < b.error ? -1 : 1));
}

async function moveBack(
  { streams, change, layer, wake }: DeadParts,
  ids: string[],
  { id: operationId, who, reason }: Operation,
): Promise<SentBack> {
  const moved: string[] = [];
  for (const [name, positions] of Map.groupBy(ids.map(positionOf), ({ name }) => name)) {
    const stream = streams.find((one) => one.name === name);
    if (!stream) continue;
    const entries = await change({
      script,
      keys: [stream.events, stream.dead, stream.operations],
      args: [
        operationId,
        layer,
        who,
        reason,
        operationsKept,
        ...positions.map(({ entry }) => entry),
      ],
    });
    moved.push(...(entries as string[]).map((entry) => `${entry}-${name}`));
  }
  if (moved.length > 0) wake.trigger();
  return { moved };
}

/** The operations of all streams. One that changed several streams is a single operation. */
export function operationsInStreams(
  { redis, streams }: Pick<DeadParts, "redis" | "streams">,
): FindOperations {
  return async (before, limit) => {
    const found = new Map<string, OperationRecord>();
    for (const { operations } of streams) {
      for await (const { atMs, fields } of entriesOf(redis, operations)) {
        const one = toOperation(atMs, fields);
        const known = found.get(one.operation_id);
        found.set(one.operation_id, { ...one, items: [...known?.items ?? [], ...one.items] });
      }
    }
    return [...found.values()]
      .filter(({ operation_id }) => before === undefined || operation_id < before)
      .sort((a, b) => a.operation_id < b.operation_id ? 1 : -1)
      .slice(0, limit);
  };
}

function toOperation(atMs: number, fields: Entry["fields"]): OperationRecord {
  const { operation_id = "", kind = "", layer = "", who = "", reason = "", items = "[]" } = fields;
  const done_at = new Date(atMs).toISOString();
  return { operation_id, done_at, kind, layer, who, reason, items: JSON.parse(items) };
}
