import type { RedisLink } from "../../redis/redis_link.ts";
import {
  type Fields,
  fieldsOf,
  type StreamNames,
  type StreamParts,
  waitingConsumer,
} from "./stream_source.ts";

// Reads the streams of a stream source without changing them.

/** A stream with its dead letters and the log of what operators did with these. */
export interface NamedStream {
  name: string; // in ids and for people
  events: string;
  dead: string;
  operations: string;
}

export interface StoredEvents
  extends Pick<StreamParts, "redis" | "eventOf">, Pick<StreamNames, "group"> {
  streams: NamedStream[];
  leaseMs: number;
}

export interface Entry {
  entry: string; // its id
  atMs: number; // when it was written, by the clock of Redis
  fields: Fields;
}

const pageLength = 500; // Redis does nothing else while it reads a page

/** All entries, the oldest first, from the given one on. */
export async function* entriesOf(
  redis: RedisLink,
  stream: string,
  from = "-",
): AsyncGenerator<Entry> {
  for (let start = from;;) {
    const reply = await redis.command(["XRANGE", stream, start, "+", "COUNT", `${pageLength}`]);
    const page = toEntries(reply);
    yield* page;
    const last = page.at(-1);
    if (!last || page.length < pageLength) return;
    start = `(${last.entry}`;
  }
}

export function toEntries(reply: unknown): Entry[] {
  return (reply as [string, string[]][]).map(([entry, list]) => ({
    entry,
    atMs: timeOf(entry),
    fields: fieldsOf(list),
  }));
}

/** What an id says of the time: an entry's first part are the milliseconds of Redis. */
export function timeOf(entry: string): number {
  return Number(entry.split("-")[0]);
}

/** Undefined if the entry can't be read. */
export function eventIn(
  { eventOf }: Pick<StoredEvents, "eventOf">,
  stream: string,
  fields: Fields,
): ReturnType<StoredEvents["eventOf"]> | undefined {
  try {
    return eventOf(fields, stream);
  } catch {
    return undefined;
  }
}

export interface Lease {
  status: "PENDING" | "IN_FLIGHT";
  attempt_count: number;
  next_retry_at: string | null;
  locked_by: string | null;
  lease_until: string | null;
}

const unread: Lease = {
  ...{ status: "PENDING", attempt_count: 0 },
  ...{ next_retry_at: null, locked_by: null, lease_until: null },
};

/** The leases of the oldest entries of a stream. */
export async function leasesOf(
  { redis, group, leaseMs }: StoredEvents,
  stream: string,
  limit: number,
): Promise<(entry: string) => Lease> {
  const [reply, now] = await Promise.all([
    redis.command(["XPENDING", stream, group, "-", "+", `${limit}`]).catch(noGroup),
    redisTime(redis),
  ]);
  const pending = reply as [entry: string, consumer: string, idleMs: number, times: number][];
  const leaseOf = new Map(pending.map(([entry, consumer, idleMs, times]) => {
    const until = new Date(now + leaseMs - idleMs).toISOString();
    return [
      entry,
      consumer === waitingConsumer ? waits(times, until) : leased(times, consumer, until),
    ];
  }));
  return (entry) => leaseOf.get(entry) ?? unread;
}

function waits(times: number, next_retry_at: string): Lease {
  return { ...unread, attempt_count: times, next_retry_at };
}

// The lease itself is no attempt before it ends.
function leased(times: number, locked_by: string, lease_until: string): Lease {
  return { ...unread, status: "IN_FLIGHT", attempt_count: times - 1, locked_by, lease_until };
}

// Before the first event there is neither a stream nor a group.
function noGroup(error: unknown): [] {
  if (error instanceof Error && error.message.startsWith("NOGROUP")) return [];
  throw error;
}

export async function redisTime(redis: RedisLink): Promise<number> {
  const [seconds, micros] = await redis.command(["TIME"]) as [string, string];
  return Number(seconds) * 1_000 + Number(micros) / 1_000;
}
