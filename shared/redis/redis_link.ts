import { createClient } from "@redis/client";
import { tlsOptions, type TlsSource } from "../postgres/tls.ts";
import { Deadlines } from "../process/deadlines.ts";
import { isEncryptedRedis } from "../process/server_urls.ts";
import type { Log } from "../process/log.ts";
import { reasonOf } from "../process/reason.ts";
import { aborted, pause } from "../process/signals.ts";
import { StartRefused } from "../process/start_refused.ts";
import { counter, fromZero } from "../telemetry/metrics.ts";
import { checkDurability } from "./durability.ts";
import { RedisUnavailable } from "./errors.ts";
import { refusalOf } from "./refusals.ts";
import type { Script } from "./script.ts";

// One connection to Redis, made again when it is lost. Nothing is queued while there is none: a call
// fails at once, and its caller decides whether to try again.

export interface RedisServer {
  url: string;
  tls?: TlsSource;
}

export interface LinkOptions extends RedisServer {
  name: string; // of the service, shown by CLIENT LIST
  scripts: Script[];
  // The setting that wants the server to confirm what is on its disk. If it can't, the start is refused.
  confirmedBy?: string | undefined;
}

export type Reply = string | number | null | Reply[];
type Client = ReturnType<typeof newClient>;
type Listener = (message: string) => void;

// A server that does not answer for this long is treated as lost. A frozen one keeps its connections.
const answerMs = 3_000;
const retryMs = 200;
const pollMs = 20;
const reportEveryMs = 30_000;

const errors = counter(
  "kenri_redis_errors_total",
  "calls of Redis that failed because it was unavailable",
);
const failed = fromZero(errors.labels());

export class RedisLink {
  readonly #options: LinkOptions;
  readonly #log: Log;
  readonly #listeners = new Map<string, Listener>();
  #client: Client | undefined;
  #reportedAt = -Infinity;
  #isDurabilityKnown = false;

  constructor(options: LinkOptions, log: Log) {
    this.#options = options;
    this.#log = log;
  }

  get connected(): boolean {
    return this.#client !== undefined;
  }

  // Whether it answers now.
  async answers(): Promise<boolean> {
    return await this.command(["PING"]).then(() => true, () => false);
  }

  // Waits for a connection, for loops that can do nothing without one.
  async connects(stop: AbortSignal): Promise<void> {
    while (!this.connected && !stop.aborted) await pause(pollMs, stop);
  }

  // Keeps a connection until the signal. A loop of the service.
  async run(stop: AbortSignal): Promise<void> {
    while (!stop.aborted) {
      try {
        const { lost } = await this.#connect();
        await Promise.race([lost, aborted(stop)]);
        if (!stop.aborted) this.#log.warn("Redis connection lost");
      } catch (error) {
        if (error instanceof StartRefused) throw error;
        this.#report(error);
      }
      if (!stop.aborted) await pause(retryMs, stop);
    }
  }

  async command(args: string[]): Promise<Reply> {
    return await this.#call((client) => client.sendCommand(args));
  }

  // Several commands that have their effect together or not at all.
  async together(commands: string[][]): Promise<Reply[]> {
    return await this.#call(async (client) => {
      const multi = client.multi();
      for (const args of commands) multi.addCommand(args);
      return await multi.exec() as unknown as Reply[];
    });
  }

  // Redis forgets scripts when it restarts, and when an operator tells it to.
  async runScript({ sha, text }: Script, keys: string[], args: string[]): Promise<Reply> {
    const rest = [`${keys.length}`, ...keys, ...args];
    return await this.#call(async (client) => {
      try {
        return await client.sendCommand<Reply>(["EVALSHA", sha, ...rest]);
      } catch (error) {
        if (!reasonOf(error).startsWith("NOSCRIPT")) throw error;
        return await client.sendCommand<Reply>(["EVAL", text, ...rest]);
      }
    });
  }

  // Before the first connection. Messages are lost while there is none.
  subscribe(channel: string, listener: Listener): void {
    this.#listeners.set(channel, listener); // each connection subscribes again
  }

  close(): Promise<void> {
    this.#drop(this.#client);
    return Promise.resolve();
  }

  async #call<Answer>(work: (client: Client) => Promise<Answer>): Promise<Answer> {
    const client = this.#client;
    try {
      if (!client) throw new RedisUnavailable("There is no connection to Redis");
      return await answers.within(work(client), tooLate);
    } catch (error) {
      const refusal = refusalOf(error);
      if (!refusal) throw error;
      failed.inc();
      if (refusal.endsConnection) this.#drop(client);
      throw refusal;
    }
  }

  // Resolves when the connection is ready.
  async #connect(): Promise<{ lost: Promise<void> }> {
    const client = newClient(this.#options);
    const lost = Promise.withResolvers<void>();
    client.on("error", () => {}); // each call reports its own failure
    client.on("terminated", () => lost.resolve());
    client.on("end", () => lost.resolve());
    try {
      await answers.within(this.#prepare(client), tooLate);
    } catch (error) {
      client.destroy();
      throw error;
    }
    this.#client = client;
    this.#reportedAt = -Infinity;
    const { hostname, port } = new URL(this.#options.url);
    this.#log.info("Connected to Redis at {server}", { server: `${hostname}:${port || 6379}` });
    return { lost: lost.promise.then(() => this.#drop(client)) };
  }

  async #prepare(client: Client): Promise<void> {
    await client.connect();
    const ask = (args: string[]) => client.sendCommand(args);
    if (/^role:slave/m.test(`${await ask(["INFO", "replication"])}`)) {
      throw new Error("the server is a replica, which takes no changes");
    }
    await checkDurability(ask, this.#options.confirmedBy, (line) => {
      if (!this.#isDurabilityKnown) this.#log.warn(line);
    });
    this.#isDurabilityKnown = true;
    for (const { name, text } of this.#options.scripts) {
      await client.sendCommand(["SCRIPT", "LOAD", text]).catch((error) => {
        const reason = reasonOf(error);
        if (!/compiling script/i.test(reason)) throw error;
        throw new StartRefused(`Redis can't compile the script ${name}: ${reason}`);
      });
    }
    for (const [channel, listener] of this.#listeners) await client.subscribe(channel, listener);
  }

  #drop(client: Client | undefined): void {
    if (this.#client === client) this.#client = undefined;
    if (client?.isOpen) client.destroy();
  }

  #report(error: unknown): void {
    if (performance.now() - this.#reportedAt < reportEveryMs) return;
    this.#reportedAt = performance.now();
    this.#log.warn("Redis can't be reached, trying again: {reason}", { reason: reasonOf(error) });
  }
}

// It neither connects again by itself nor asks the server or the environment for anything else.
function newClient({ url, tls, name }: LinkOptions) {
  return createClient({
    url,
    name: `kenri-${name}`,
    RESP: 3, // one connection for commands and for messages
    disableOfflineQueue: true,
    disableClientInfo: true,
    commandOptions: { timeout: 0 }, // it would keep a timer for each command until its time is over
    maintNotifications: "disabled",
    socket: {
      reconnectStrategy: false,
      connectTimeout: answerMs,
      ...(isEncryptedRedis(url) ? { tls: true, ...tlsOptions(tls) } : {}),
    },
  });
}

const answers = new Deadlines(answerMs);

const tooLate = () =>
  new RedisUnavailable("Redis did not answer in time", { endsConnection: true });
