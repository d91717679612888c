// The matchmaking service with Redis, and clients that repeat what was not answered.
import assert from "node:assert/strict";
import {
  commonKeys,
  idempotencyKeyOf,
  joinsOf,
  keysOf,
  queueOf,
  waitingOf,
} from "../../../matchmaking/keys.ts";
import { group } from "../../../matchmaking/publish_events.ts";
import { scripts } from "../../../matchmaking/scripts/scripts.ts";
import { newTicketId } from "../../../matchmaking/ticket.ts";
import { assertAllHold } from "../../../tools/chaos/invariants/invariants.ts";
import { matchInvariantsOf } from "../../../tools/chaos/invariants/match_invariants.ts";
import { readMatchEvents, readMatchStore } from "../../../tools/chaos/invariants/match_tables.ts";
import type { HttpRequest } from "../../../tools/load/http_request.ts";
import { attempt } from "../../../tools/load/repeating_client.ts";
import { startService } from "../../../tools/servers/service_process.ts";
import { until } from "../../../tools/servers/wait.ts";
import { runArguments } from "../../../tools/services.ts";
import { freshRedis, redisCommand } from "../../support/redis.ts";
import { freshStreamNames, natsUrl, withNats } from "../../support/streams.ts";
import { type Counts, observe } from "./observer.ts";
import type { CrashPoint, System } from "./point.ts";

type Service = "matchmaking";
export type MatchPoint = CrashPoint<Service, MatchStage>;

export interface MatchStage extends System<Service> {
  stream: string;
  /** Makes a ticket, as a replica does that neither pairs nor expires. Returns its id. */
  wait(user: string, ttlMs?: number): Promise<string>;
  /** Ends the tickets whose time is over, as a replica does that publishes nothing. */
  expire(): Promise<void>;
  /** A client that goes on. */
  ask(url: string, request: HttpRequest): Promise<void>;
  untilReady(url: string): Promise<void>;
  /** The client may get an answer. */
  tryTo(url: string, request: HttpRequest): Promise<void>;
  /**
   * The client gets no answer, and repeats the request at the next process. Another one, which may get an
   * answer, asks at the same moment: later it could find the process dead.
   */
  askInVain(url: string, request: HttpRequest, beside?: HttpRequest): Promise<void>;
  idOf(user: string): Promise<string>; // of the ticket that waits
  redis(...command: string[]): Promise<unknown>;
}

export const mode = "casual";
const { events, dead, tickets } = keysOf(mode);
export { events };

export const joining = (user: string): HttpRequest => ({
  path: `/v1/matchmaking/queues/${mode}/tickets`,
  init: {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-User-Id": user },
    body: JSON.stringify({ party_size: 1, attributes: {}, idempotency_key: user }),
  },
});

export const onTicket = (method: string, user: string, id: string, wait = ""): HttpRequest => ({
  path: `/v1/matchmaking/tickets/${id}${wait}`,
  init: { method, headers: { "X-User-Id": user } },
});

export async function openMatches(): Promise<MatchStage> {
  await using opened = new AsyncDisposableStack();
  const { url: redisUrl } = opened.use(await freshRedis());
  const { stream, subject } = freshStreamNames();
  const nats = opened.use(await observe({ databases: {}, natsUrl, stream }));
  const redis = (...command: string[]) => redisCommand(redisUrl, ...command);
  const closing = opened.move();
  let unanswered: HttpRequest | undefined;
  const tryTo = async (url: string, request: HttpRequest) => {
    await untilReady(url);
    return await attempt(url, request);
  };
  const ask = async (url: string, request: HttpRequest) => {
    const { answer, problem } = await tryTo(url, request);
    assert.equal(answer?.status, 200, answer?.body ?? problem);
  };
  return {
    settings: {
      REDIS_URL: redisUrl,
      NATS_URL: natsUrl,
      MATCHMAKING_MODES: mode,
      MATCHMAKING_NATS_STREAM: stream,
      MATCHMAKING_NATS_SUBJECT: subject,
      MATCHMAKING_OUTBOX_POLL_INTERVAL: "50ms",
      MATCHMAKING_OUTBOX_LEASE: "1s", // whoever takes an entry over decides how long its lease was
    },
    shortLeases: {},
    owners: { matchmaking: redisUrl },
    observer: {
      ...nats,
      counts: async () => ({ ...await countsIn(redis), ...await nats.counts() }),
      sessionsOf: () => connectionsIn(redisUrl),
      [Symbol.asyncDispose]: () => Promise.resolve(),
    },
    stream,
    redis,
    ...replicaAt(redis),
    idOf: async (user) => {
      const [id] = await redis("ZRANGE", waitingOf(mode, user), "0", "0") as [string];
      return id;
    },
    tryTo: async (url, request) => void await tryTo(url, request),
    untilReady,
    ask,
    askInVain: async (url, request, beside) => {
      unanswered = request;
      await untilReady(url);
      const [{ answer }] = await Promise.all([
        attempt(url, request),
        beside && attempt(url, beside),
      ]);
      assert.equal(answer, undefined);
    },
    start,
    goOn: async (_, settings) => {
      const service = await start("matchmaking", settings);
      if (unanswered) await ask(service.url, unanswered);
      return service;
    },
    assertHolds: async () => {
      const streams = await exists(stream) ? [await readMatchEvents(natsUrl, stream)] : [];
      assertAllHold(matchInvariantsOf({ stores: [await readMatchStore(redisUrl)], streams }));
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  };
}

/** Steps of a replica that dies, or ends, right after them. */
function replicaAt(redis: MatchStage["redis"]): Pick<MatchStage, "wait" | "expire"> {
  const run = (script: { text: string }, keys: string[], args: string[]) =>
    redis("EVAL", script.text, `${keys.length}`, ...keys, ...args);
  return {
    wait: async (user, ttlMs = 60_000) => {
      const id = newTicketId(mode);
      const keys = [
        ...[...commonKeys(mode), queueOf(mode), idempotencyKeyOf(mode, user, user)],
        ...[waitingOf(mode, user), joinsOf(mode, user), keysOf(mode).buckets],
      ];
      const args = [id, user, mode, user, "{}", "hash", "t", "", ""];
      await run(scripts.join, keys, [...args, `${ttlMs}`, "600000", "60000", "1", "100"]);
      return id;
    },
    expire: () =>
      until("the time of a ticket is over", async () => {
        const [expired] = await run(
          scripts.expire,
          [...commonKeys(mode), queueOf(mode)],
          ["10"],
        ) as number[];
        return expired === 1;
      }),
  };
}

function exists(stream: string): Promise<boolean> {
  return withNats(natsUrl, async (connection) => {
    const { streams } = await connection.jetstreamManager();
    return await streams.info(stream).then(() => true, () => false);
  });
}

const start: System<Service>["start"] = (service, settings, change = (args) => args) =>
  startService(service, settings, {
    arguments: (name, read) => change(runArguments(name, read)),
  });

function untilReady(url: string): Promise<void> {
  return until("it is ready", async () => {
    const { answer } = await attempt(url, { path: "/readyz" });
    return answer?.status === 200;
  });
}

const countAll = `
  local counts = {}
  local function add(what, count) counts[what] = (counts[what] or 0) + count end
  for _, key in ipairs(redis.call('KEYS', KEYS[1] .. '*')) do
    add('tickets ' .. redis.call('HGET', key, 'status'), 1)
  end
  local waiting = redis.call('XLEN', KEYS[2])
  local known = redis.pcall('XPENDING', KEYS[2], ARGV[1], '-', '+', 100)
  for _, entry in ipairs(known.err and {} or known) do
    local leased = entry[2] ~= 'waiting'
    if leased then
      waiting = waiting - 1
      add('events LEASED', 1)
    end
    add('event attempts', entry[4] - (leased and 1 or 0))
  end
  add('events WAITING', waiting)
  for _, entry in ipairs(redis.call('XRANGE', KEYS[3], '-', '+')) do
    add('events DEAD', 1)
    for at = 1, #entry[2], 2 do
      if entry[2][at] == 'dead_attempts' then add('event attempts', entry[2][at + 1]) end
    end
  end
  return cjson.encode(counts)`;

async function countsIn(redis: MatchStage["redis"]): Promise<Counts> {
  const counts: Counts = JSON.parse(
    `${await redis("EVAL", countAll, "3", tickets, events, dead, group)}`,
  );
  return Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0));
}

async function connectionsIn(redisUrl: string): Promise<number> {
  const clients = `${await redisCommand(redisUrl, "CLIENT", "LIST")}`.split("\n");
  const database = new URL(redisUrl).pathname.slice(1);
  return clients.filter((line) =>
    line.includes("name=kenri-matchmaking ") && line.includes(` db=${database} `)
  ).length;
}
