import {
  type ConsumerConfig,
  DiscardPolicy,
  type JetStreamManager,
  type NatsConnection,
  NatsError,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
  type StreamInfo,
} from "nats";
import { reasonOf, StartRefused } from "./errors.ts";
import type { Log } from "./log.ts";
import { counter, gauge } from "./metrics.ts";
import { connectNats, type NatsServers } from "./nats_connection.ts";
import { pause } from "./signals.ts";

// One connection and its life. Nothing survives it: whoever held the session asks for the next
// one, and checks anew what it relies on. So no state has to be patched up after a reconnect.
export interface Session {
  connection: NatsConnection;
  signal: AbortSignal; // aborted when the connection is lost, or the service stops
}

const isConnected = gauge("kenri_nats_connected", "1 while the connection to NATS is there");
const connections = counter(
  "kenri_nats_connections_total",
  "connections to NATS that were made; above 1 they were lost meanwhile",
);

const refused = counter(
  "kenri_nats_refused_total",
  "what NATS did not permit: `publish` to, or `subscription` of, a subject",
  ["operation"],
);
for (const operation of ["publish", "subscription"]) refused.inc({ operation }, 0);

const retryMs = 500;
const reportEveryMs = 30_000;
const maxReported = 20; // per connection; inboxes have ever new names

export class NatsLink {
  readonly #servers: NatsServers;
  readonly #name: string;
  readonly #log: Log;
  #session: Session | undefined;
  #connecting: Promise<Session> | undefined;
  #reportedAt = -Infinity;

  constructor(servers: NatsServers, name: string, log: Log) {
    this.#servers = servers;
    this.#name = name;
    this.#log = log;
  }

  get connected(): boolean {
    return this.#session !== undefined;
  }

  // For whoever would rather fail than wait.
  get current(): Session | undefined {
    return this.#session;
  }

  // Waits as long as the server is away. Undefined when the service stops meanwhile.
  async session(stop: AbortSignal): Promise<Session | undefined> {
    while (!stop.aborted) {
      try {
        return this.#session ?? await (this.#connecting ??= this.#connect(stop));
      } catch (error) {
        if (performance.now() - this.#reportedAt > reportEveryMs) {
          this.#reportedAt = performance.now(); // for all who wait
          const reason = reasonOf(error);
          this.#log.warn("NATS can't be reached, trying again: {reason}", { reason });
        }
        await pause(retryMs, stop);
      }
    }
    return undefined;
  }

  async close(): Promise<void> {
    await this.#session?.connection.drain().catch(() => {});
  }

  async #connect(stop: AbortSignal): Promise<Session> {
    try {
      const connection = await connectNats(this.#servers, {
        name: this.#name,
        timeout: 3_000,
        pingInterval: 5_000, // a server that says nothing is noticed after two of these
        maxPingOut: 2,
      });
      const lost = new AbortController();
      const session = { connection, signal: AbortSignal.any([lost.signal, stop]) };
      this.#session = session;
      isConnected.set(1);
      connections.inc();
      this.#reportedAt = -Infinity;
      this.#log.info("Connected to NATS at {server}", { server: connection.getServer() });
      void this.#hearRefusals(connection);
      void connection.closed().then((error) => {
        this.#session = undefined;
        isConnected.set(0);
        lost.abort();
        if (!stop.aborted) this.#log.warn("The connection to NATS was lost", { error });
      });
      return session;
    } finally {
      this.#connecting = undefined;
    }
  }

  // The server answers nothing to whoever waits for an answer, so it would look like an outage.
  async #hearRefusals(connection: NatsConnection): Promise<void> {
    const reported = new Set<string>();
    for await (const { permissionContext } of connection.status()) {
      if (!permissionContext) continue;
      const { operation, subject } = permissionContext;
      refused.inc({ operation });
      if (reported.has(subject) || reported.size === maxReported) continue;
      reported.add(subject);
      this.#log.error("NATS does not permit {operation} of {subject}", { operation, subject });
    }
  }
}

export interface WantedStream {
  name: string;
  subject: string;
  duplicateWindowMs: number;
  replicas: number;
}

const nanosecondsPerMs = 1_000_000;
const maxAgeMs = 7 * 24 * 3_600_000;

// Makes the stream if it is missing and brings it to the wanted settings if it differs.
export async function ensureStream(
  manager: JetStreamManager,
  wanted: WantedStream,
): Promise<StreamInfo> {
  const config = {
    subjects: [wanted.subject],
    retention: RetentionPolicy.Limits,
    storage: StorageType.File,
    discard: DiscardPolicy.Old,
    duplicate_window: wanted.duplicateWindowMs * nanosecondsPerMs,
    max_age: maxAgeMs * nanosecondsPerMs,
    num_replicas: wanted.replicas,
  };
  const info = await manager.streams.info(wanted.name).catch((error) => {
    if (errorCode(error) === streamNotFound) return;
    throw error;
  });
  try {
    if (!info) return await manager.streams.add({ name: wanted.name, ...config });
    const differs = Object.entries(config).some(([key, value]) =>
      JSON.stringify(info.config[key as keyof StreamConfig]) !== JSON.stringify(value)
    );
    return differs
      ? await manager.streams.update(wanted.name, { ...info.config, ...config })
      : info;
  } catch (error) {
    // Another replica may have made it a moment ago.
    if (!info && errorCode(error) === streamNameInUse) return ensureStream(manager, wanted);
    if (!isAboutSettings(error)) throw error;
    throw new StartRefused(
      `Stream ${JSON.stringify(wanted.name)} can't get the wanted settings: ${reasonOf(error)}`,
    );
  }
}

// What keeps messages from a pull consumer, or gives them out by other rules, where somebody else
// has set it.
const foreignSettings = Object.fromEntries(
  ["filter_subject", "filter_subjects", "headers_only", "backoff", "inactive_threshold"]
    .concat("max_batch", "max_bytes", "max_expires", "deliver_subject", "deliver_group")
    .map((name) => [name, undefined]),
);

// Likewise for a durable pull consumer of the stream.
export async function ensureConsumer(
  manager: JetStreamManager,
  stream: string,
  wanted: Partial<ConsumerConfig> & { durable_name: string },
): Promise<void> {
  const name = wanted.durable_name;
  const info = await manager.consumers.info(stream, name).catch((error) => {
    if (errorCode(error) === consumerNotFound) return;
    throw error;
  });
  if (!info) {
    await manager.consumers.add(stream, wanted); // the same again is no error
    return;
  }
  const config = { ...foreignSettings, ...wanted };
  const differs = Object.entries(config).some(([key, value]) =>
    info.config[key as keyof ConsumerConfig] !== value
  );
  if (!differs) return;
  try {
    await manager.consumers.update(stream, name, { ...info.config, ...config });
  } catch (error) {
    if (!isAboutSettings(error)) throw error;
    throw new StartRefused(
      `Consumer ${JSON.stringify(name)} can't get the wanted settings: ${reasonOf(error)}`,
    );
  }
}

const consumerNotFound = 10014;
const streamNotFound = 10059;
const streamNameInUse = 10058;
const consumerNotChanged = 10012;
const streamNotChanged = 10052;
const noCluster = 10074; // several replicas are wanted of a server that is alone

function errorCode(error: unknown): number | undefined {
  return error instanceof NatsError ? error.api_error?.err_code : undefined;
}

// 400 is the server's word that the settings are at fault; these errors say so too, but come with 500.
function isAboutSettings(error: unknown): boolean {
  if (!(error instanceof NatsError)) return false;
  const { code, err_code = 0 } = error.api_error ?? {};
  return code === 400 || [consumerNotChanged, streamNotChanged, noCluster].includes(err_code);
}

// Says once, in one line, how this setup can lose what it acknowledged.
export function warnOfLoss(info: StreamInfo, log: Log): void {
  if (info.config.num_replicas > 1) return;
  log.warn(
    "Stream {stream} has one replica: a lost disk, or a power failure unless nats-server runs " +
      "with sync_interval: always, loses acknowledged events until the relay publishes them again",
    { stream: info.config.name },
  );
}
