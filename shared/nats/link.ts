import type { NatsConnection } from "nats";
import { reasonOf } from "../process/reason.ts";
import type { Log } from "../process/log.ts";
import { counter, gauge } from "../telemetry/metrics.ts";
import { connectNats, type NatsServers } from "./connection.ts";
import { pause } from "../process/signals.ts";

// One connection and its life. Nothing survives it: whoever held the session asks for the next
// one, and checks anew what it relies on. So no state has to be patched up after a reconnect.
export interface Session {
  connection: NatsConnection;
  signal: AbortSignal; // aborted when the connection is lost, or the service stops
  refused: ReadonlySet<string>; // subjects that NATS does not permit
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
  // The loops whose streams and consumers are not there, or not as they are wanted (provisions.ts).
  readonly unprovisioned: Set<string> = new Set();

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
      const refused = new Set<string>();
      const session = { connection, signal: AbortSignal.any([lost.signal, stop]), refused };
      this.#session = session;
      isConnected.set(1);
      connections.inc();
      this.#reportedAt = -Infinity;
      this.#log.info("Connected to NATS at {server}", { server: connection.getServer() });
      void this.#hearRefusals(connection, refused);
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
  async #hearRefusals(connection: NatsConnection, subjects: Set<string>): Promise<void> {
    for await (const { permissionContext } of connection.status()) {
      if (!permissionContext) continue;
      const { operation, subject } = permissionContext;
      refused.inc({ operation });
      if (subjects.has(subject) || subjects.size === maxReported) continue;
      subjects.add(subject);
      this.#log.error("NATS does not permit {operation} of {subject}", { operation, subject });
    }
  }
}
