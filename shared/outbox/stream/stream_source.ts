import type { Settlement } from "../../queue/job.ts";
import type { MakeChange } from "../../redis/confirmed.ts";
import type { RedisLink, Reply } from "../../redis/redis_link.ts";
import { type Script, scriptOf } from "../../redis/script.ts";
import type { EventRow } from "../event_types.ts";
import type { OpenSource, Published } from "../source.ts";
import bury from "./bury.lua" with { type: "text" };
import claim from "./claim.lua" with { type: "text" };
import putBack from "./put_back.lua" with { type: "text" };

// Events that wait in streams of Redis. The leases are those of a consumer group:
//   claimed     read by this consumer, or taken over from one whose lease has expired
//   published   acknowledged and deleted, in one step
//   failed      moved to the stream of dead letters
//   put back    given to the consumer "waiting", from whom anyone may claim it
// A stream keeps nothing that was published, so this source can't find out what JetStream has lost.

export interface StreamRow extends EventRow {
  stream: string; // its key in Redis
  entry: string; // its id there
  claimedAt: number; // by performance.now()
  waitedMs: number; // from when it was written until it was claimed, by the clock of Redis
}

export interface StreamNames {
  streams: { events: string; dead: string }[];
  group: string;
}

export type Fields = Record<string, string>;

export interface StreamParts extends StreamNames {
  redis: RedisLink;
  change: MakeChange;
  // The event of an entry. If it throws, the entry ends as a dead letter.
  eventOf(fields: Fields, stream: string): Pick<EventRow, "id" | "content">;
  // Called for each published event.
  observePublished?(row: StreamRow, published: Published): void;
}

const scripts = {
  claim: scriptOf("claim", claim),
  putBack: scriptOf("put_back", putBack),
  bury: scriptOf("bury", bury),
};
export const sourceScripts: Script[] = Object.values(scripts);

export const waitingConsumer = "waiting"; // has what waits for another attempt
const deadKept = 10_000;

export function streamSource(parts: StreamParts): OpenSource<StreamRow> {
  return ({ worker, leaseMs, pollIntervalMs }) => {
    const consumer = `${worker}-${crypto.randomUUID()}`; // its name proves the lease
    const source = { ...parts, consumer, leaseMs };
    let looksAgainAt = -Infinity; // for expired leases
    return {
      claim: async (limit) => {
        const looks = performance.now() >= looksAgainAt;
        if (looks) looksAgainAt = performance.now() + pollIntervalMs;
        return await claimFromEach(source, limit, looks);
      },
      settle: async (settled) => {
        const settling = parts.streams.map((stream) =>
          settleIn(source, stream, settled.filter(({ row }) => row.stream === stream.events))
        );
        return new Set((await Promise.all(settling)).flat());
      },
      extend: async (rows) => {
        const extending = parts.streams.map(({ events }) => {
          const own = rows.filter(({ stream }) => stream === events);
          return give(source, events, own.map((row) => ({ row, idleMs: 0, to: consumer })));
        });
        return new Set((await Promise.all(extending)).flat());
      },
    };
  };
}

interface Source extends StreamParts {
  consumer: string;
  leaseMs: number;
}

// The streams are asked one after the other, because a claim of all at once could return more than the
// limit.
async function claimFromEach(source: Source, limit: number, looksForExpired: boolean) {
  const rows: StreamRow[] = [];
  for (const { events } of source.streams) {
    const left = limit - rows.length;
    if (left > 0) rows.push(...await claimFrom(source, events, left, looksForExpired));
  }
  return { rows, more: rows.length === limit };
}

async function claimFrom(
  { change, group, consumer, leaseMs, eventOf }: Source,
  stream: string,
  limit: number,
  looksForExpired: boolean,
): Promise<StreamRow[]> {
  const args = [group, consumer, `${leaseMs}`, `${limit}`, looksForExpired ? "1" : "0"];
  const reply = await change({ script: scripts.claim, keys: [stream], args });
  const [now, leased] = reply as [number, [string, number, string, string[]][]];
  const claimedAt = performance.now();
  return leased.map(([entry, times, before, fields]) => ({
    ...readEvent(() => eventOf(fieldsOf(fields), stream)),
    key: null,
    token: `${consumer} ${times}`,
    attempts: times - 1,
    takenOver: before !== "" && before !== waitingConsumer,
    stream,
    entry,
    claimedAt,
    waitedMs: now - Number(entry.split("-")[0]),
  }));
}

// A newer release may be able to read it. So it is tried again like an event of an unknown type, and
// ends as a dead letter.
function readEvent(read: () => Pick<EventRow, "id" | "content">): Pick<EventRow, "id" | "content"> {
  try {
    return read();
  } catch (error) {
    const event_type = "an entry that can't be read";
    return {
      id: crypto.randomUUID(),
      content: { event_type, payload: `${error}`, traceparent: null },
    };
  }
}

export function fieldsOf(list: string[]): Fields {
  const pairs = list.flatMap((name, at) => at % 2 === 0 ? [[name, list[at + 1] ?? ""]] : []);
  return Object.fromEntries(pairs);
}

type Settled = Settlement<StreamRow, Published>;

async function settleIn(
  source: Source,
  { events, dead }: { events: string; dead: string },
  settled: Settled[],
): Promise<string[]> {
  const done = settled.flatMap((one) => one.kind === "done" ? [one] : []);
  const failed = settled.flatMap((one) => one.kind === "failed" ? [one] : []);
  const back = settled.flatMap((one) =>
    one.kind === "retry" || one.kind === "released"
      ? [{ ...one, idleMs: idleUntil(source, one.delayMs ?? 0), to: waitingConsumer }]
      : []
  );
  const owned = await Promise.all([
    markPublished(source, events, done),
    moveToDead(source, [events, dead], failed),
    give(source, events, back),
  ]);
  return owned.flat();
}

// Redis knows how long an entry has been idle, and not until when it waits. So it waits for a lease at
// most.
function idleUntil({ leaseMs }: Source, delayMs: number): number {
  return Math.max(0, Math.ceil(leaseMs - delayMs));
}

// An event that JetStream has acknowledged needs no lease: another relay would only publish it again.
async function markPublished(
  { redis, group, observePublished }: Source,
  stream: string,
  done: Extract<Settled, { kind: "done" }>[],
): Promise<string[]> {
  if (done.length === 0) return [];
  const entries = done.map(({ row }) => row.entry);
  await redis.together([["XACK", stream, group, ...entries], ["XDEL", stream, ...entries]]);
  for (const { row, result } of done) observePublished?.(row, result);
  return done.map(({ row }) => row.id);
}

async function moveToDead(
  { change, group, consumer }: Source,
  keys: string[],
  failed: Extract<Settled, { kind: "failed" }>[],
): Promise<string[]> {
  if (failed.length === 0) return [];
  const entries = failed.flatMap(({ row, error, attempted }) => [
    row.entry,
    `${row.attempts + (attempted ? 1 : 0)}`,
    error,
  ]);
  const args = [group, consumer, `${deadKept}`, ...entries];
  return idsOf(failed, await change({ script: scripts.bury, keys, args }));
}

interface Given {
  row: StreamRow;
  kind?: "retry" | "released"; // absent: its lease is extended
  idleMs: number;
  to: string;
}

// An entry that is claimed counts as leased once more, so one that was not tried counts once less.
async function give(
  { change, group, consumer }: Source,
  stream: string,
  given: Given[],
): Promise<string[]> {
  if (given.length === 0) return [];
  const entries = given.flatMap(({ row, kind, idleMs, to }) => {
    const times = kind === "released" ? row.attempts : row.attempts + 1;
    return [row.entry, `${idleMs}`, `${times}`, to];
  });
  const args = [group, consumer, ...entries];
  return idsOf(given, await change({ script: scripts.putBack, keys: [stream], args }));
}

function idsOf(rows: { row: StreamRow }[], owned: Reply): string[] {
  const entries = new Set(owned as string[]);
  return rows.flatMap(({ row }) => entries.has(row.entry) ? [row.id] : []);
}
