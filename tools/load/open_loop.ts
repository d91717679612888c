// A load that does not wait for answers: changes arrive by the clock, as from customers who know
// nothing of each other, on so many connections as a proxy in front might hold. In a process of its
// own, which spends as little as it can, because it shares the machine with what it loads.
// Arguments: url, and the rest as JSON; prints JSON.
import { fileURLToPath } from "node:url";

export interface OpenLoop {
  perSecond: number;
  seconds: number;
  first: number; // the number of the first change
}

export interface Arrival {
  status: number; // or one of the two below
  ms: number; // from sending to the answer
}

export const lost = 0; // without an answer
export const turnedAway = -1; // there was no connection to send it on

export interface Arrivals {
  changes: Arrival[]; // in the order of their numbers
  withoutRetryAfter: number; // of the 503s
  seconds: number; // that it took to send all: more than asked for where the load itself lags
}

export async function runOpenLoop(url: string, options: OpenLoop): Promise<Arrivals> {
  const { success, stdout } = await new Deno.Command(Deno.execPath(), {
    args: [
      ...["run", "--cached-only", `--allow-net=${new URL(url).host}`],
      ...[fileURLToPath(import.meta.url), url, JSON.stringify(options)],
    ],
    stderr: "inherit",
  }).output();
  if (!success) throw new Error("The load could not be carried out");
  return JSON.parse(new TextDecoder().decode(stdout));
}

export interface Times {
  count: number;
  p50: number;
  p99: number;
  max: number;
}

export function timesOf({ changes }: Arrivals, status: number): Times {
  const times = changes.filter((change) => change.status === status).map(({ ms }) => ms)
    .sort((a, b) => a - b);
  const at = (share: number) => times[Math.floor((times.length - 1) * share)] ?? 0;
  return { count: times.length, p50: at(0.5), p99: at(0.99), max: at(1) };
}

const tickMs = 2;
const patienceMs = 60_000;
const maxConnections = 4_000;

async function load(url: URL, { perSecond, seconds, first }: OpenLoop): Promise<Arrivals> {
  const count = Math.round(perSecond * seconds);
  const changes: Arrival[] = [];
  let withoutRetryAfter = 0;
  let open = 0;
  const idle: Connection[] = [];
  const arrive = async (change: Arrival, number: number) => {
    if (idle.length === 0 && open >= maxConnections) return void (change.status = turnedAway);
    const from = performance.now();
    let connection = idle.pop();
    try {
      if (!connection) {
        open++;
        connection = await connect(url);
      }
      const { status, retryAfter } = await connection.ask(changeRequest(url.host, number));
      change.status = status;
      if (status === 503 && !retryAfter) withoutRetryAfter++;
      idle.push(connection);
    } catch {
      open--;
      connection?.close();
    }
    change.ms = Math.round(performance.now() - from);
  };
  const from = performance.now();
  const answers: Promise<void>[] = [];
  while (changes.length < count) {
    const due = Math.min(count, (performance.now() - from) / 1_000 * perSecond);
    while (changes.length < due) {
      const change = { status: lost, ms: 0 };
      answers.push(arrive(change, first + changes.length));
      changes.push(change);
    }
    await new Promise((next) => setTimeout(next, tickMs));
  }
  const sent = (performance.now() - from) / 1_000;
  await Promise.race([Promise.all(answers), new Promise((over) => setTimeout(over, patienceMs))]);
  return { changes, withoutRetryAfter, seconds: sent };
}

interface Connection {
  ask(request: Uint8Array): Promise<{ status: number; retryAfter: boolean }>;
  close(): void;
}

const decoder = new TextDecoder("latin1");

async function connect({ hostname, port }: URL): Promise<Connection> {
  const socket = await Deno.connect({ hostname, port: Number(port) });
  socket.setNoDelay();
  const buffer = new Uint8Array(1_024); // far above an answer
  const ask = async (request: Uint8Array) => {
    for (let written = 0; written < request.length;) {
      written += await socket.write(request.subarray(written));
    }
    for (let size = 0;;) {
      const read = await socket.read(buffer.subarray(size));
      if (!read) throw new Error("The service closed the connection");
      size += read;
      const text = decoder.decode(buffer.subarray(0, size));
      const end = text.indexOf("\r\n\r\n");
      const length = Number(/content-length: *(\d+)/i.exec(text)?.[1]);
      if (end < 0 || size < end + 4 + length) continue;
      return { status: Number(text.slice(9, 12)), retryAfter: /\r\nretry-after: *\d/i.test(text) };
    }
  };
  return { ask, close: () => socket.close() };
}

const encoder = new TextEncoder();

// Each of a user of its own, so that each of them can be a change.
function changeRequest(host: string, number: number): Uint8Array {
  const body = JSON.stringify({
    user_id: `user-${number}`,
    stock_keeping_unit: "premium",
    reason: "purchase",
    purchase_id: `purchase-${number}`,
  });
  return encoder.encode(
    `POST /v1/entitlements/grants HTTP/1.1\r\nHost: ${host}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n` +
      `Idempotency-Key: key-${number}\r\n\r\n${body}`,
  );
}

if (import.meta.main) {
  const [url = "", options = ""] = Deno.args;
  console.log(JSON.stringify(await load(new URL(url), JSON.parse(options))));
  Deno.exit(0); // whatever still waits for an answer
}
