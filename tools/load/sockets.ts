// The load over sockets, in a process of its own. It shares the machine with the services, so it
// does little work: it writes prepared bytes and reads little of an answer. A closed loop sends the
// next request when one is answered; an open loop sends by the clock, like customers who don't know
// each other. Arguments: url, and the loop as JSON. Prints one line of JSON.
import { fileURLToPath } from "node:url";
import { grant, toHttp } from "./change_request.ts";
import { command, type HttpRequest, toBytes } from "./http_request.ts";

// What a load asks for as request number `number`.
const kinds = {
  change: (number, { users }) => changeOf(number, users),
  replay: (number, { users }) => changeOf(number % 10_000, users),
  reserve: reservationOf,
  list: (number, { users }) => ({ path: `/v1/users/user-${number % (users ?? 1)}/entitlements` }),
  join: joinOf,
  me: (number, { cookies = [] }) => meOf(`${cookies[number % cookies.length]}`),
} satisfies Record<string, (number: number, of: Callers) => HttpRequest>;

interface Callers {
  users?: number; // number of users who share the changes; absent: each change is of a new user
  cookies?: string[]; // of people with sessions
}

export type LoadKind = keyof typeof kinds;

interface ClosedLoop extends Callers {
  kind: LoadKind;
  first: number; // the number of the first request
  count: number;
}

export interface LoadResult {
  seconds: number;
  latenciesMs: Times;
}

interface OpenLoop {
  perSecond: number;
  seconds: number;
  first: number;
}

export interface Arrival {
  status: number; // or `lost` or `turnedAway`
  ms: number; // from sending to the answer
}
export const lost = 0; // without an answer
export const turnedAway = -1; // there was no connection to send it on

export interface Arrivals {
  changes: Arrival[]; // in the order of their numbers
  withoutRetryAfter: number; // of the 503s
  seconds: number; // until all were sent: more than asked for if the load itself is too slow
}

export interface Times {
  count: number;
  p50: number;
  p99: number;
  max: number;
}

/** Fails unless every answer is a 200 or 202. */
export function runLoad(
  url: string,
  kind: LoadKind,
  options: Omit<ClosedLoop, "kind">,
): Promise<LoadResult> {
  return inOwnProcess(url, { kind, ...options });
}

export function runOpenLoop(url: string, options: OpenLoop): Promise<Arrivals> {
  return inOwnProcess(url, options);
}

export function timesOf({ changes }: Arrivals, status: number): Times {
  return timesOfAll(changes.filter((change) => change.status === status).map(({ ms }) => ms));
}

function timesOfAll(times: number[]): Times {
  times.sort((a, b) => a - b);
  const at = (share: number) => times[Math.floor((times.length - 1) * share)] ?? 0;
  return { count: times.length, p50: at(0.5), p99: at(0.99), max: at(1) };
}

async function inOwnProcess<Result>(url: string, loop: ClosedLoop | OpenLoop): Promise<Result> {
  const { success, stdout } = await new Deno.Command(Deno.execPath(), {
    args: [
      ...["run", "--cached-only", `--allow-net=${new URL(url).host}`],
      ...[fileURLToPath(import.meta.url), url, JSON.stringify(loop)],
    ],
    stderr: "inherit",
  }).output();
  if (!success) throw new Error(`The load on ${url} failed; its error is above`);
  return JSON.parse(new TextDecoder().decode(stdout));
}

const closedConnections = 64;

async function closedLoop(url: URL, { kind, first, count, ...callers }: ClosedLoop) {
  const requests = Array.from(
    { length: count },
    (_, i) => toBytes(url.host, kinds[kind](first + i, callers)),
  );
  const connections = await Promise.all(
    Array.from({ length: closedConnections }, () => connect(url)),
  );
  const latencies = new Array<number>(count).fill(0);
  let next = 0;
  const send = async ({ ask, close }: Connection) => {
    while (next < count) {
      const index = next++;
      const from = performance.now();
      const answer = await ask(requests[index] as Uint8Array);
      latencies[index] = performance.now() - from;
      if (![200, 202].includes(statusOf(answer))) throw new Error(`Not accepted: ${answer}`);
    }
    close();
  };
  const from = performance.now();
  await Promise.all(connections.map(send));
  const seconds = (performance.now() - from) / 1_000;
  return { seconds, latenciesMs: timesOfAll(latencies) };
}

const tickMs = 2;
const patienceMs = 60_000;
const maxConnections = 4_000; // as many as a proxy in front might hold

async function openLoop(url: URL, { perSecond, seconds, first }: OpenLoop): Promise<Arrivals> {
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
      const answer = await connection.ask(toBytes(url.host, changeOf(number)));
      change.status = statusOf(answer);
      if (change.status === 503 && !/\r\nretry-after: *\d/i.test(answer)) withoutRetryAfter++;
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
  /** The whole answer, as text. */
  ask(request: Uint8Array): Promise<string>;
  close(): void;
}

const decoder = new TextDecoder("latin1");

async function connect({ hostname, port }: URL): Promise<Connection> {
  const socket = await Deno.connect({ hostname, port: Number(port) });
  socket.setNoDelay();
  const buffer = new Uint8Array(4_096); // more than any answer here
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
      if (end >= 0 && size >= end + 4 + length) return text;
    }
  };
  return { ask, close: () => socket.close() };
}

function statusOf(answer: string): number {
  return Number(answer.slice(9, 12));
}

/** Each change is of a new user; with `users`, this many users get one entitlement after another. */
function changeOf(number: number, users?: number): HttpRequest {
  const [user, sku] = users === undefined
    ? [`user-${number}`, "premium"]
    : [`user-${number % users}`, `premium-${Math.floor(number / users)}`];
  const [key, purchase] = [`key-${number}`, `purchase-${number}`];
  return toHttp(grant({ key, user, sku, reason: "purchase", purchase }));
}

function meOf(cookie: string): HttpRequest {
  return { path: "/v1/me", init: { method: "GET", headers: { Cookie: cookie } } };
}

/** Each ticket is of a new user. */
function joinOf(number: number): HttpRequest {
  return {
    path: "/v1/matchmaking/queues/casual/tickets",
    init: {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-User-Id": `user-${number}` },
      body: JSON.stringify({ party_size: 1, attributes: {}, idempotency_key: `key-${number}` }),
    },
  };
}

/** Each reservation is of a new user. */
function reservationOf(number: number): HttpRequest {
  const fields = { user_id: `user-${number}`, point_amount: 10, execute_at: inOneYear() };
  return command("/v1/points/reservations", `key-${number}`, fields);
}

export function inOneYear(): string {
  return new Date(Date.now() + 365 * 24 * 3_600_000).toISOString();
}

if (import.meta.main) {
  const [url = "", options = ""] = Deno.args;
  const loop: ClosedLoop | OpenLoop = JSON.parse(options);
  const load = "kind" in loop ? closedLoop(new URL(url), loop) : openLoop(new URL(url), loop);
  console.log(JSON.stringify(await load));
  Deno.exit(0); // without waiting for what is still unanswered
}
