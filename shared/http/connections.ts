import { pause } from "../process/signals.ts";

// HTTP/1.1 has one request at a time on a connection, and the next one is read when the answer
// before it has been sent. Deno's server also speaks HTTP/2, which can't be switched off. There a
// client may send 200 requests at once, and their answers stay in memory until the client reads
// them. So each connection has one turn at a time, as with HTTP/1.1. A client that uses HTTP/1.1
// never notices.

export interface Peer {
  hostname: string;
  port: number;
}

export interface Turn {
  connection: string;
  untilSent: Promise<void> | undefined; // while the answer is being sent
  hasNext: boolean; // another request waits for the end of this turn
}

// With HTTP/1.1 the runtime may report that an answer was sent a moment after it has read the next
// request. With HTTP/2 the answer may never be sent.
const maxWaitMs = 2_000;

export class Connections {
  readonly #turns = new Map<string, Turn>();

  // Returns undefined if another request of the connection is not done, which only HTTP/2 allows.
  begin({ hostname, port }: Peer): Turn | undefined | Promise<Turn | undefined> {
    const connection = `${hostname} ${port}`;
    const before = this.#turns.get(connection);
    if (before === undefined) return this.#open(connection);
    if (before.untilSent === undefined || before.hasNext) return undefined;
    before.hasNext = true;
    return this.#after(before.untilSent, connection);
  }

  async #after(untilSent: Promise<void>, connection: string): Promise<Turn | undefined> {
    const isSent = new AbortController();
    await Promise.race([untilSent, pause(maxWaitMs, isSent.signal)]);
    isSent.abort();
    return this.#turns.has(connection) ? undefined : this.#open(connection);
  }

  #open(connection: string): Turn {
    const turn = { connection, untilSent: undefined, hasNext: false };
    this.#turns.set(connection, turn);
    return turn;
  }

  end({ connection }: Turn): void {
    this.#turns.delete(connection);
  }
}
