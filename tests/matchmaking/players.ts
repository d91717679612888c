// People who look for a match on their pages, and a look at their tickets in Redis.
import assert from "node:assert/strict";
import type { RedisServer } from "../../tools/servers/redis.ts";
import type { Tab } from "../support/browser.ts";
import { type Matchmaking, startMatchmaking } from "../support/matchmaking.ts";
import { matchmakingPlace, matchmakingSettings } from "../support/matchmaking_events.ts";
import { type Passing, startPassing } from "../support/passing.ts";
import { type People, startPeople } from "../support/people.ts";
import { ownRedis } from "../support/redis.ts";
import { freshStreamNames } from "../support/streams.ts";

export interface Players extends People {
  redis: RedisServer;
  matchmaking: Matchmaking;
  before: Passing; // between the gateway and the matchmaking service
}

export async function startPlayers(): Promise<Players> {
  await using parts = new AsyncDisposableStack();
  const redis = parts.use(await ownRedis());
  const names = freshStreamNames();
  const matchmaking = parts.use(
    await startMatchmaking({ REDIS_URL: redis.url }, matchmakingPlace(names)),
  );
  const before = parts.use(await startPassing(matchmaking));
  const people = parts.use(
    await startPeople({
      gateway: { GATEWAY_MATCHMAKING_URL: before.url },
      notification: matchmakingSettings(names),
    }),
  );
  const moved = parts.move();
  return {
    ...{ ...people, redis, matchmaking, before },
    [Symbol.asyncDispose]: () => moved.disposeAsync(),
  };
}

export const find = (tab: Tab, mode = "casual"): Promise<void> =>
  tab.evaluate(`(() => {
    document.getElementById("mode").value = "${mode}";
    document.querySelector("#join button").click();
  })()`);

export const cancel = (tab: Tab): Promise<void> =>
  tab.evaluate(`document.getElementById("cancel-match").click()`);

export const looking = (mode = "casual"): RegExp =>
  new RegExp(`Looking for a match: ${mode}\\s+0:\\d\\d\\s+Cancel`);

export interface StoredTicket {
  key: string; // in Redis
  id: string;
  status: string;
  idempotencyKey: string;
}

/** All tickets that the user has had. */
export async function ticketsOf(
  { matchmaking: { redis } }: Players,
  userId: string,
): Promise<StoredTicket[]> {
  const keys = await redis("KEYS", "mm:{*}:ticket:*") as string[];
  const tickets = await Promise.all(keys.map(async (key) => {
    const fields = ["user_id", "status", "idempotency_key"];
    const [user, status, idempotencyKey] = await redis("HMGET", key, ...fields) as string[];
    return { key, id: key.split(":").at(-1), user, status, idempotencyKey };
  }));
  return tickets.filter(({ user }) => user === userId) as StoredTicket[];
}

export async function waitingTicketOf(players: Players, userId: string): Promise<StoredTicket> {
  const tickets = await ticketsOf(players, userId);
  const [waiting, ...others] = tickets.filter(({ status }) => status === "QUEUED");
  assert.ok(waiting);
  assert.deepEqual(others, []);
  return waiting;
}
