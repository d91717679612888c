import { pause } from "./signals.ts";

// HTTP/1.1 has one request at a time on a connection, and reads the next one when the answer before it
// has left. Deno's server also speaks HTTP/2 and can't be told not to: there 200 requests come at once,
// and their answers stay in memory while the client gives no window for them. So every connection is
// held to what HTTP/1.1 does. A client that knows no better never notices.

export interface Peer {
  hostname: string;
  port: number;
}

export interface Turn {
  connection: string;
  untilTaken: Promise<void> | undefined; // there when the answer is given
  isWaitedFor: boolean;
}

// By HTTP/1.1 the runtime may tell us that an answer has left a moment after it has read the next
// request. By HTTP/2 it may never leave.
const maxWaitMs = 2_000;

export class Connections {
  readonly #turns = new Map<string, Turn>();

  // The turn of a request; undefined when only HTTP/2 has another one before it.
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

// The runtime says only of a stream when it has left.
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
