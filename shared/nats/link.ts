import type { NatsConnection } from "nats";
import { reasonOf } from "../process/reason.ts";
import type { Log } from "../process/log.ts";
import { pause } from "../process/signals.ts";
import { counter, gauge } from "../telemetry/metrics.ts";
import { connectNats, type NatsServers } from "./connection.ts";
import { recordRefusals } from "./refusals.ts";

// A session is one connection. Nothing outlives it: its users ask for the next session and check
// again what they rely on. So no state has to be repaired after a reconnect.
export interface Session {
  connection: NatsConnection;
  signal: AbortSignal; // aborted when the connection is lost, or the service stops
  refused: ReadonlySet<string>; // subjects that NATS does not permit
}

const isConnected = gauge("kenri_nats_connected", "1 while connected to NATS");
const connections = counter(
  "kenri_nats_connections_total",
  "connections made to NATS; each one after the first replaced a lost one",
);

const retryMs = 500;
const reportEveryMs = 30_000;

export class NatsLink {
  // The loops whose stream or consumer is missing or has other settings (provisions.ts).
  readonly unprovisioned: Set<string> = new Set();

  readonly name: string; // of the service, which is also its NATS user
  readonly #servers: NatsServers;
  readonly #log: Log;
  #session: Session | undefined;
  #connecting: Promise<Session> | undefined;
  #reportedAt = -Infinity;

  constructor(servers: NatsServers, name: string, log: Log) {
    this.#servers = servers;
    this.name = name;
    this.#log = log;
  }

  get connected(): boolean {
    return this.#session !== undefined;
  }

  // Undefined while there is no connection.
  get current(): Session | undefined {
    return this.#session;
  }

  // Waits until the server answers. Undefined if the service stops before that.
  async session(stop: AbortSignal): Promise<Session | undefined> {
    while (!stop.aborted) {
      try {
        return this.#session ?? await (this.#connecting ??= this.#connect(stop));
      } catch (error) {
        if (performance.now() - this.#reportedAt > reportEveryMs) {
          this.#reportedAt = performance.now(); // one report for all callers that wait
          const reason = reasonOf(error);
          this.#log.warn("NATS can't be reached, trying again: {reason}", { reason });
        }
        await pause(retryMs, stop);
      }
    }
    return undefined;
  }

  // One session after the other, until the service stops.
  async *sessions(stop: AbortSignal): AsyncGenerator<Session> {
    while (!stop.aborted) {
      const session = await this.session(stop);
      if (session) yield session;
    }
  }

  async close(): Promise<void> {
    await this.#session?.connection.drain().catch(() => {});
  }

  async #connect(stop: AbortSignal): Promise<Session> {
    try {
      const connection = await connectNats(this.#servers, {
        name: this.name,
        timeout: 3_000,
        pingInterval: 5_000, // a silent server is noticed after two of these
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
      void recordRefusals(connection, refused, this.#log);
      void connection.closed().then((error) => {
        this.#session = undefined;
        isConnected.set(0);
        lost.abort();
        if (!stop.aborted) this.#log.warn("NATS connection lost", { error });
      });
      return session;
    } finally {
      this.#connecting = undefined;
    }
  }
}
