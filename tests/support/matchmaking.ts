// The matchmaking service with a logical database of Redis and stream names of its own.
import {
  type ServiceProcess,
  type Settings,
  startService,
} from "../../tools/servers/service_process.ts";
import { until } from "../../tools/servers/wait.ts";
import { type Answer, call } from "./api.ts";
import { freshRedis, redisCommand } from "./redis.ts";
import { freshStreamNames, natsUrl, type StreamNames } from "./streams.ts";

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
  await until("matchmaking is ready", async () => {
    const { status } = await call(`${service.url}/readyz`);
    return status === 200;
  });
  return service;
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
