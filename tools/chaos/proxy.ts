// A link between a program and a server that can be cut, stalled, muted and slowed.

export type Condition =
  | { kind: "open" }
  | { kind: "cut" } // connections end, new ones are refused
  | { kind: "stalled" } // connections are accepted, but no data passes until later
  | { kind: "muted" } // requests pass, answers do not
  | { kind: "slow"; delayMs: number }; // delays every chunk

interface Connection {
  client: Deno.TcpConn;
  server?: Deno.TcpConn;
}

export class Proxy implements AsyncDisposable {
  readonly port: number;
  readonly #serverPort: number;
  readonly #connections = new Set<Connection>();
  #listener: Deno.TcpListener | undefined;
  #condition: Condition = { kind: "open" };
  #changed = Promise.withResolvers<void>();

  constructor(port: number, serverPort: number) {
    this.port = port;
    this.#serverPort = serverPort;
    this.#listen();
  }

  set(condition: Condition): void {
    // Answers that were held back while muted never arrive.
    if (condition.kind === "cut" || this.#condition.kind === "muted") this.#closeAll();
    this.#condition = condition;
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
    if (condition.kind === "cut") this.#close();
    else this.#listen();
  }

  #listen(): void {
    if (this.#listener) return;
    const listener = Deno.listen({ hostname: "127.0.0.1", port: this.port });
    this.#listener = listener;
    void (async () => {
      for await (const client of listener) void this.#carry(client);
    })();
  }

  #close(): void {
    this.#listener?.close();
    this.#listener = undefined;
  }

  async #carry(client: Deno.TcpConn): Promise<void> {
    const connection: Connection = { client };
    this.#connections.add(connection);
    try {
      const server = await Deno.connect({ hostname: "127.0.0.1", port: this.#serverPort });
      connection.server = server;
      if (!this.#connections.has(connection)) return;
      await Promise.race([
        this.#pump(client, server, "request"),
        this.#pump(server, client, "answer"),
      ]);
    } catch {
      /* One side has ended, and the other is ended below. */
    } finally {
      this.#end(connection);
    }
  }

  async #pump(from: Deno.TcpConn, to: Deno.TcpConn, what: "request" | "answer"): Promise<void> {
    const buffer = new Uint8Array(64 * 1_024);
    for (;;) {
      const size = await from.read(buffer);
      if (size === null) return;
      await this.#passage(what);
      for (let sent = 0; sent < size;) sent += await to.write(buffer.subarray(sent, size));
    }
  }

  async #passage(what: "request" | "answer"): Promise<void> {
    for (;;) {
      const condition = this.#condition;
      if (condition.kind === "slow") {
        await new Promise((over) => setTimeout(over, condition.delayMs));
        return;
      }
      const isHeld = condition.kind === "stalled" ||
        (condition.kind === "muted" && what === "answer");
      if (!isHeld) return;
      await this.#changed.promise;
    }
  }

  #closeAll(): void {
    for (const connection of this.#connections) this.#end(connection);
  }

  #end(connection: Connection): void {
    this.#connections.delete(connection);
    for (const side of [connection.client, connection.server]) {
      try {
        side?.close();
      } catch { /* It is closed already. */ }
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.set({ kind: "cut" });
    return Promise.resolve();
  }
}
