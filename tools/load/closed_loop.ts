// A closed loop: each connection sends the next request when its last one is answered. The load shares
// the machine with what it measures, so it does little work: requests are prepared bytes, and an
// answer is only looked at.
export interface Connection {
  /** The bytes of the answer, which the next answer replaces. */
  ask(request: Uint8Array): Promise<Uint8Array>;
  close(): void;
}

export interface LoadResult {
  seconds: number;
  latenciesMs: Times;
}

export interface Times {
  count: number;
  p50: number;
  p99: number;
  max: number;
}

/** Fails unless every answer is accepted. */
export async function closedLoop(
  connections: Connection[],
  requests: Uint8Array[],
  isAccepted: (answer: Uint8Array) => boolean,
): Promise<LoadResult> {
  const latencies = new Array<number>(requests.length).fill(0);
  let next = 0;
  const send = async ({ ask, close }: Connection) => {
    while (next < requests.length) {
      const index = next++;
      const from = performance.now();
      const answer = await ask(requests[index] as Uint8Array);
      latencies[index] = performance.now() - from;
      if (!isAccepted(answer)) throw new Error(`Not accepted: ${textOf(answer)}`);
    }
    close();
  };
  const from = performance.now();
  await Promise.all(connections.map(send));
  const seconds = (performance.now() - from) / 1_000;
  return { seconds, latenciesMs: timesOfAll(latencies) };
}

export function timesOfAll(milliseconds: number[]): Times {
  const sorted = milliseconds.toSorted((a, b) => a - b);
  const at = (share: number) => sorted[Math.floor((sorted.length - 1) * share)] ?? 0;
  return { count: sorted.length, p50: at(0.5), p99: at(0.99), max: at(1) };
}

const decoder = new TextDecoder("latin1");

export function textOf(answer: Uint8Array): string {
  return decoder.decode(answer);
}

const bufferBytes = 8_192; // more than any answer here

/** Connects, and lets `isWhole` say from its bytes when an answer has arrived. */
export async function openConnection(
  { hostname, port }: URL,
  isWhole: (answer: Uint8Array) => boolean,
): Promise<Connection> {
  const socket = await Deno.connect({ hostname, port: Number(port) });
  socket.setNoDelay();
  const buffer = new Uint8Array(bufferBytes);
  const ask = async (request: Uint8Array) => {
    for (let written = 0; written < request.length;) {
      written += await socket.write(request.subarray(written));
    }
    for (let size = 0;;) {
      const read = await socket.read(buffer.subarray(size));
      if (!read) throw new Error("The server closed the connection");
      size += read;
      const answer = buffer.subarray(0, size);
      if (isWhole(answer)) return answer;
    }
  };
  return { ask, close: () => socket.close() };
}
