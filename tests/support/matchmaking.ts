// The matchmaking service with a logical database of Redis and stream names of its own.
import {
  decodeMatchmakingEvent,
  type MatchmakingEventFields,
} from "../../proto/matchmaking/decode.ts";
import {
  type ServiceProcess,
  type Settings,
  startService,
} from "../../tools/servers/service_process.ts";
import { until } from "../../tools/servers/wait.ts";
import { type Answer, call } from "./api.ts";
import { freshRedis, redisCommand } from "./redis.ts";
import { freshStreamNames, natsUrl, readStream, type StreamNames } from "./streams.ts";

export interface Matchmaking extends StreamNames, AsyncDisposable {
  [Symbol.asyncDispose](): Promise<void>;
  url: string;
  redisUrl: string;
  service: ServiceProcess;
  settings: Settings; // to start a replica
  redis(...args: string[]): Promise<unknown>;
}

export async function startMatchmaking(
  more: Settings = {},
  names: StreamNames = freshStreamNames(),
): Promise<Matchmaking> {
  await using started = new AsyncDisposableStack();
  const redisUrl = more["REDIS_URL"] ?? started.use(await freshRedis()).url;
  const settings = {
    REDIS_URL: redisUrl,
    NATS_URL: natsUrl,
    MATCHMAKING_NATS_STREAM: names.stream,
    MATCHMAKING_NATS_SUBJECT: names.subject,
    ...more,
  };
  const service = await startReplica({ settings });
  started.defer(() => service.kill().then(() => {}));
  const parts = started.move();
  return {
    ...names,
    url: service.url,
    redisUrl,
    service,
    settings,
    redis: (...args) => redisCommand(redisUrl, ...args),
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}

/** Waits until it is ready. */
export async function startReplica(
  { settings }: Pick<Matchmaking, "settings">,
): Promise<ServiceProcess> {
  const service = await startService("matchmaking", settings);
  await untilReady(service);
  return service;
}

export async function untilReady({ url }: { url: string }): Promise<void> {
  await until("matchmaking is ready", async () => (await call(`${url}/readyz`)).status === 200);
}

interface Join {
  mode?: string;
  key?: string;
  attributes?: unknown;
}

export function join(
  { url }: { url: string },
  user: string,
  { mode = "casual", key = crypto.randomUUID(), attributes = {} }: Join = {},
): Promise<Answer> {
  return call(`${url}/v1/matchmaking/queues/${mode}/tickets`, {
    method: "POST",
    headers: { "X-User-Id": user, "Content-Type": "application/json" },
    body: JSON.stringify({ party_size: 1, attributes, idempotency_key: key }),
  });
}

export async function joined(
  service: { url: string },
  user: string,
  more: Join = {},
): Promise<string> {
  const { status, json, text } = await join(service, user, more);
  if (status !== 200) throw new Error(`A join of ${user} answers ${status}: ${text}`);
  return json.ticket_id;
}

export function ticket(
  { url }: { url: string },
  user: string,
  id: string,
  query = "",
): Promise<Answer> {
  return call(`${url}/v1/matchmaking/tickets/${id}${query}`, { headers: { "X-User-Id": user } });
}

export function cancel({ url }: { url: string }, user: string, id: string): Promise<Answer> {
  return call(`${url}/v1/matchmaking/tickets/${id}`, {
    method: "DELETE",
    headers: { "X-User-Id": user },
  });
}

/** The events in the stream, in its order. */
export async function published(
  { settings, stream }: Pick<Matchmaking, "settings" | "stream">,
): Promise<MatchmakingEventFields[]> {
  const stored = await readStream(settings["NATS_URL"] ?? natsUrl, stream);
  return stored.map(({ data }) => decodeMatchmakingEvent(data));
}

/** Waits until so many events are published, and none waits in Redis. */
export async function untilPublished(
  service: Pick<Matchmaking, "settings" | "stream" | "redis">,
  count: number,
): Promise<MatchmakingEventFields[]> {
  let events: MatchmakingEventFields[] = [];
  await until(`${count} events are published and none waits`, async () => {
    const waiting = await Promise.all(
      ["casual", "rank"].map((mode) => service.redis("XLEN", `mm:{${mode}}:events`)),
    );
    if (waiting.some((count) => count !== 0)) return false;
    events = await published(service);
    return events.length >= count;
  });
  return events;
}

/** Its time to wait is over, as if it had joined a minute ago. */
export async function age(
  { redis }: Pick<Matchmaking, "redis">,
  id: string,
  mode = "casual",
): Promise<void> {
  await redis("HSET", `mm:{${mode}}:ticket:${id}`, "expires_ms", "1");
  await redis("ZADD", `mm:{${mode}}:expiring`, "1", id);
}
