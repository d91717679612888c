// Tickets of matchmaking: how fast they are made over HTTP, and how fast the loop pairs them. The limits
// are the same scripts, called by a client that does nothing else.
import { keysOf, queueOf } from "../../matchmaking/keys.ts";
import { makeTicket } from "../../matchmaking/join.ts";
import { matchTickets, pairOnce, Rings } from "../../matchmaking/match_tickets.ts";
import { scripts } from "../../matchmaking/scripts/scripts.ts";
import { Wakeup } from "../../shared/process/signals.ts";
import { makesChanges } from "../../shared/redis/confirmed.ts";
import { RedisLink } from "../../shared/redis/redis_link.ts";
import { runLoad } from "../load/sockets.ts";
import { memoryOf } from "../servers/memory.ts";
import { untilReady } from "../load/stage.ts";
import { startService } from "../servers/service_process.ts";
import { until } from "../servers/wait.ts";
import { matchmakingSettings } from "./both.ts";
import { type Bench, shared, timed, type Work } from "./work.ts";

const mode = "casual";
const atOnce = 64; // as many as the load has connections
const hour = 3_600_000;
const rules = {
  ticketTtlMs: hour,
  resultTtlMs: hour,
  idempotencyTtlMs: hour,
  perUser: 1,
  bucket: undefined,
};

export async function startJoin({ servers, quick }: Bench): Promise<Work> {
  const count = quick ? 10_000 : 50_000;
  const service = await startService("matchmaking", {
    ...matchmakingSettings(servers, "join", 1),
    MATCHMAKING_WORKER_ENABLED: "false",
    MATCHMAKING_TICKET_TTL: "1h",
  });
  await using started = new AsyncDisposableStack();
  started.defer(() => service.kill().then(() => {}));
  await untilReady(service);
  const link = started.use(await openLink(databaseOf(servers.redis.url, 1)));
  const measure = async (work: () => Promise<number>) => {
    await link.redis.command(["FLUSHDB"]);
    const perSecond = await work();
    await expectWaiting(link.redis, count);
    return perSecond;
  };
  const parts = started.move();
  return {
    unit: "joins/s",
    atMost: { "matchmaking MiB": 160 },
    measure: async () => {
      const perSecond = await measure(async () => {
        const { seconds } = await runLoad(service.url, "join", { first: 0, count });
        return count / seconds;
      });
      return {
        perSecond,
        figures: { "matchmaking MiB": memoryOf(service.pid).peakMebibytes },
      };
    },
    limits: [{
      name: "the script alone",
      what: `EVALSHA of join, ${atOnce} at once over one connection`,
      target: 0.4,
      measure: () => measure(() => timed(count, () => fill(link.redis, count))),
    }],
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}

const batchSize = 200;
const callsAtOnce = 4; // more are not faster

export async function startPair({ servers, quick }: Bench): Promise<Work> {
  const count = quick ? 40_000 : 200_000;
  await using started = new AsyncDisposableStack();
  const { redis } = started.use(await openLink(databaseOf(servers.redis.url, 2)));
  const change = makesChanges(redis);
  const measure = async (work: () => Promise<unknown>) => {
    await redis.command(["FLUSHDB"]);
    await fill(redis, count);
    const perSecond = await timed(count, work);
    await expectWaiting(redis, 0);
    const events = await redis.command(["XLEN", keysOf(mode).events]);
    if (events !== count) throw new Error(`${events} events exist, and not ${count}`);
    return perSecond;
  };
  const rings = new Rings([mode], new Wakeup());
  const log = { warn: console.error, info: () => {} } as never;
  const pairAll = async () => {
    const stop = new AbortController();
    const options = { pollIntervalMs: 1_000, batchSize, hasBuckets: false };
    const looping = matchTickets({ redis, change, rings, log }, mode, options, stop.signal);
    rings.ring(mode, "");
    const none = async () => await redis.command(["EXISTS", queueOf(mode)]) === 0;
    while (!await none()) await new Promise((again) => setTimeout(again, 5));
    stop.abort();
    await looping;
  };
  const parts = started.move();
  return {
    unit: "tickets/s",
    atMost: {},
    measure: async () => ({ perSecond: await measure(pairAll), figures: {} }),
    limits: [{
      name: "the script alone",
      what: `EVALSHA of pair for ${batchSize} tickets, ${callsAtOnce} calls at once`,
      target: 0.8,
      measure: () =>
        measure(() =>
          shared(count / batchSize, callsAtOnce, () => pairOnce(change, mode, "", batchSize))
        ),
    }],
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}

function databaseOf(url: string, number: number): string {
  return new URL(`/${number}`, url).href;
}

async function openLink(url: string): Promise<AsyncDisposable & { redis: RedisLink }> {
  const log = { warn: () => {}, info: () => {} } as never;
  const redis = new RedisLink({ url, name: "bench", scripts: Object.values(scripts) }, log);
  const stop = new AbortController();
  const running = redis.run(stop.signal);
  await until("Redis answers", () => redis.answers());
  return {
    redis,
    [Symbol.asyncDispose]: async () => {
      stop.abort();
      await running;
      await redis.close();
    },
  };
}

async function fill(redis: RedisLink, count: number): Promise<void> {
  const change = makesChanges(redis);
  const trace = { traceId: "bench", traceparent: null };
  await shared(count, atOnce, (i) => {
    const wish = { mode, userId: `user-${i}`, key: `key-${i}`, attributes: "{}", bucket: "" };
    return makeTicket({ change, rules }, wish, trace);
  });
}

async function expectWaiting(redis: RedisLink, count: number): Promise<void> {
  const waiting = await redis.command(["ZCARD", queueOf(mode)]);
  if (waiting !== count) throw new Error(`${waiting} tickets wait, and not ${count}`);
}
