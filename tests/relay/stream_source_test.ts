// The source of the relay that leases the entries of Redis streams.
import assert from "node:assert/strict";
import type { EventSource } from "../../shared/outbox/source.ts";
import {
  sourceScripts,
  type StreamRow,
  streamSource,
} from "../../shared/outbox/stream/stream_source.ts";
import type { Settlement } from "../../shared/queue/job.ts";
import type { Published } from "../../shared/outbox/source.ts";
import { makesChanges } from "../../shared/redis/confirmed.ts";
import { RedisLink } from "../../shared/redis/redis_link.ts";
import { until } from "../../tools/servers/wait.ts";
import { freshRedis, redisCommand } from "../support/redis.ts";
import { collectingLog } from "../support/relays.ts";

const leaseMs = 60_000;
const group = "relay";
const streams = ["a", "b"].map((name) => ({ events: `{t}:${name}`, dead: `{t}:${name}:dead` }));
const [a = "", b = ""] = streams.map(({ events }) => events);

type Source = EventSource<StreamRow>;
interface Place extends AsyncDisposable {
  redis(...args: string[]): Promise<unknown>;
  open(): Source;
  add(stream: string, ...names: string[]): Promise<void>;
  /** The leases of all entries are over, as if a minute had passed. */
  expire(): Promise<void>;
}

async function place(): Promise<Place> {
  await using started = new AsyncDisposableStack();
  const { url } = started.use(await freshRedis());
  const { log } = collectingLog();
  const link = new RedisLink({ url, name: "test", scripts: sourceScripts }, log);
  const stopping = new AbortController();
  const running = link.run(stopping.signal);
  started.defer(async () => {
    stopping.abort();
    await running;
    await link.close();
  });
  await until("it is connected", () => link.connected);
  const redis = (...args: string[]) => redisCommand(url, ...args);
  const eventOf = ({ name = "" }: Record<string, string>) => {
    if (name === "unreadable") throw new Error("it can't be read");
    return { id: name, content: { event_type: "Test", payload: {}, traceparent: null } };
  };
  const parts = started.move();
  return {
    redis,
    open: () =>
      streamSource({ redis: link, change: makesChanges(link), streams, group, eventOf })({
        ...{ worker: "w", leaseMs, pollIntervalMs: 0, batchSize: 100, maxAttempts: 3 },
        backoff: { baseMs: 1, maxMs: 1, minMs: 1, jitterMin: 1, jitterMax: 1 },
      }, log),
    add: async (stream, ...names) => {
      for (const name of names) await redis("XADD", stream, "*", "name", name);
    },
    expire: async () => {
      for (const { events } of streams) {
        const pending = await redis("XPENDING", events, group, "-", "+", "100") as string[][];
        for (const [id = "", owner = "", , times = ""] of pending) {
          const idle = ["IDLE", `${leaseMs}`, "RETRYCOUNT", `${times}`, "JUSTID"];
          await redis("XCLAIM", events, group, owner, "0", id, ...idle);
        }
      }
    },
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}

const claim = async (source: Source, limit = 10) =>
  (await source.claim(limit, { tokens: [], lanes: [] } as never)).rows;
const names = (rows: StreamRow[]) => rows.map(({ id }) => id);
const done = (row: StreamRow): Settlement<StreamRow, Published> => ({
  ...{ kind: "done", row, result: { generation: 0, sequence: 1, ackedAt: performance.now() } },
} as Settlement<StreamRow, Published>);
const retry = (row: StreamRow, delayMs: number) =>
  ({ kind: "retry", row, delayMs, error: "refused" }) as Settlement<StreamRow, Published>;
const released = (row: StreamRow) =>
  ({ kind: "released", row }) as Settlement<StreamRow, Published>;
const failed = (row: StreamRow) =>
  ({ kind: "failed", row, error: "too often", attempted: true }) as Settlement<
    StreamRow,
    Published
  >;

Deno.test("entries of all streams are claimed in order and up to the limit, by one consumer each", async () => {
  await using at = await place();
  await at.add(a, "1", "2", "3");
  await at.add(b, "4", "5");
  const [one, other] = [at.open(), at.open()];
  const first = await one.claim(2, {} as never);
  assert.deepEqual([names(first.rows), first.more], [["1", "2"], true]);
  assert.deepEqual(names(await claim(other)), ["3", "4", "5"]);
  assert.deepEqual(await claim(one), []);
  for (const { attempts, takenOver, waitedMs } of first.rows) {
    assert.deepEqual([attempts, takenOver], [0, false]);
    assert.ok(waitedMs >= 0 && waitedMs < 10_000, `${waitedMs}`);
  }
});

Deno.test("what is published is acknowledged and deleted", async () => {
  await using at = await place();
  await at.add(a, "1", "2");
  await at.add(b, "3");
  const source = at.open();
  const rows = await claim(source);
  assert.deepEqual(await source.settle(rows.map(done)), new Set(["1", "2", "3"]));
  for (const { events, dead } of streams) {
    assert.equal(await at.redis("XLEN", events), 0);
    assert.equal((await at.redis("XPENDING", events, group) as number[])[0], 0);
    assert.equal(await at.redis("EXISTS", dead), 0);
  }
});

Deno.test("an expired lease is taken over, which counts as an attempt; one that is extended is not", async () => {
  await using at = await place();
  await at.add(a, "1", "2");
  const [one, other] = [at.open(), at.open()];
  const rows = await claim(one);
  await at.expire();
  const [, second] = rows;
  assert.ok(second);
  assert.deepEqual(await one.extend([second]), new Set(["2"]));
  const [taken, ...more] = await claim(other);
  assert.deepEqual([taken?.id, taken?.attempts, taken?.takenOver, more], ["1", 1, true, []]);
  await at.expire();
  const again = await claim(one);
  assert.deepEqual(again.map(({ id, attempts }) => [id, attempts]), [["1", 2], ["2", 1]]);
});

Deno.test("a consumer that has lost its lease changes nothing", async () => {
  await using at = await place();
  await at.add(a, "1", "2", "3");
  const [late, owner] = [at.open(), at.open()];
  const [one, two, three] = await claim(late);
  assert.ok(one && two && three);
  await at.expire();
  const taken = await claim(owner);
  assert.deepEqual(await late.settle([retry(one, 0), released(two), failed(three)]), new Set());
  assert.deepEqual(await late.extend([one, two, three]), new Set());
  assert.equal(await at.redis("EXISTS", `${a}:dead`), 0);
  assert.deepEqual(await claim(late), []);
  assert.deepEqual(await owner.settle(taken.map(done)), new Set(["1", "2", "3"]));
});

Deno.test("a retry counts and waits for its time, and what is released does neither", async () => {
  await using at = await place();
  await at.add(a, "1", "2");
  const [source, other] = [at.open(), at.open()];
  const [one, two] = await claim(source);
  assert.ok(one && two);
  await source.settle([retry(one, 400), released(two)]);
  const [again, ...more] = await claim(other);
  const seen = [again?.id, again?.attempts, again?.takenOver, more];
  assert.deepEqual(seen, ["2", 0, false, []]);
  let retried: StreamRow[] = [];
  const began = performance.now();
  await until("it is claimed", async () => (retried = await claim(other)).length > 0);
  assert.ok(performance.now() - began > 200);
  const [row] = retried;
  assert.deepEqual([row?.id, row?.attempts, row?.takenOver], ["1", 1, false]);
});

Deno.test("what fails for good is moved to the dead letters with its error and its attempts", async () => {
  await using at = await place();
  await at.add(a, "1", "unreadable");
  const source = at.open();
  const [one, unreadable] = await claim(source);
  assert.ok(one && unreadable);
  assert.match(unreadable.content.event_type, /can't be read/);
  assert.match(`${unreadable.content.payload}`, /it can't be read/);
  assert.deepEqual(await source.settle([failed(one)]), new Set(["1"]));
  const [[, fields]] = await at.redis("XRANGE", `${a}:dead`, "-", "+") as [[string, string[]]];
  assert.deepEqual(fields.slice(0, 4), ["dead_attempts", "1", "dead_error", "too often"]);
  assert.deepEqual(fields.slice(4), ["dead_entry", one.entry, "name", "1"]);
  assert.equal(await at.redis("XLEN", a), 1);
});

Deno.test("after a wipe of Redis and after the loss of an entry the source goes on", async () => {
  await using at = await place();
  const source = at.open();
  await at.add(a, "1");
  const rows = await claim(source);
  await at.redis("FLUSHDB");
  assert.deepEqual(await source.settle(rows.map(released)).catch(() => "refused"), "refused");
  await at.add(a, "2", "3");
  const [two] = await claim(source);
  assert.equal(two?.id, "2");
  await at.redis("XDEL", a, two?.entry ?? "");
  await at.expire();
  assert.deepEqual(names(await claim(at.open())), ["3"]);
});

Deno.test("consumers that have ended are forgotten, but not those that still have entries", async () => {
  await using at = await place();
  await at.add(a, "1");
  await claim(at.open());
  await claim(at.open());
  const consumers = async () =>
    (await at.redis("XINFO", "CONSUMERS", a, group) as unknown[]).length;
  assert.equal(await consumers(), 2);
  const [{ text = "" } = {}] = sourceScripts;
  const sooner = text.replace("forgotten_ms = 3600000", "forgotten_ms = -1");
  assert.notEqual(sooner, text);
  await at.redis("EVAL", sooner, "1", a, group, "new", `${leaseMs}`, "0", "1");
  assert.equal(await consumers(), 1);
});
