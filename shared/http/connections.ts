import { pause } from "../process/signals.ts";

// HTTP/1.1 has one request at a time on a connection, and reads the next one when the answer before it
// has left. Deno's server also speaks HTTP/2, which can't be switched off. There a client may send 200
// requests at once, and their answers stay in memory until the client reads them. So every connection
// is limited to what HTTP/1.1 allows. A client of HTTP/1.1 never notices.

export interface Peer {
  hostname: string;
  port: number;
}

export interface Turn {
  connection: string;
  untilTaken: Promise<void> | undefined; // there when the answer is given
  isWaitedFor: boolean;
}

// With HTTP/1.1 the runtime may report that an answer was sent a moment after it has read the next
// request. With HTTP/2 the answer may never be sent.
const maxWaitMs = 2_000;

export class Connections {
  readonly #turns = new Map<string, Turn>();

  // The turn of a request; undefined if another one is still before it, which only HTTP/2 allows.
  begin({ hostname, port }: Peer): Turn | undefined | Promise<Turn | undefined> {
    const connection = `${hostname} ${port}`;
    const before = this.#turns.get(connection);
    if (before === undefined) return this.#open(connection);
    if (before.untilTaken === undefined || before.isWaitedFor) return undefined;
    before.isWaitedFor = true;
    return this.#after(before.untilTaken, connection);
  }

  async #after(untilTaken: Promise<void>, connection: string): Promise<Turn | undefined> {
    const isTaken = new AbortController();
    await Promise.race([untilTaken, pause(maxWaitMs, isTaken.signal)]);
    isTaken.abort();
    return this.#turns.has(connection) ? undefined : this.#open(connection);
  }

  #open(connection: string): Turn {
    const turn = { connection, untilTaken: undefined, isWaitedFor: false };
    this.#turns.set(connection, turn);
    return turn;
  }

  end({ connection }: Turn): void {
    this.#turns.delete(connection);
  }

  endWhenTaken(turn: Turn, taken: Promise<void>, over: () => void): void {
    const end = () => {
      this.end(turn);
      over();
    };
    turn.untilTaken = taken.then(end, end);
  }
}

// The runtime reports only for streams when they have been sent.
export async function toldWhenTaken(answer: Response): Promise<Response> {
  if (answer.headers.get("Content-Type") === "text/event-stream") return answer;
  const { status, headers } = answer;
  if (answer.body === null) return answer;
  const bytes = new Uint8Array(await answer.arrayBuffer());
  const stream = new ReadableStream<Uint8Array>({
    start: (controller) => {
      controller.enqueue(bytes);
      controller.close();
    },
  });
  headers.set("Content-Length", `${bytes.length}`);
  return new Response(stream, { status, headers });
}
