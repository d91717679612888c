// Load over HTTP, in a process of its own. A closed loop sends the next request when one is answered;
// an open loop sends by the clock, like customers who don't know each other.
import { fileURLToPath } from "node:url";
import { grant, toHttp } from "./change_request.ts";
import {
  closedLoop,
  type Connection,
  type LoadResult,
  textOf,
  type Times,
  timesOfAll,
} from "./closed_loop.ts";
import { connectToHttp, statusOf } from "./http_connection.ts";
import { command, type HttpRequest, toBytes } from "./http_request.ts";
import { answerCaller, inOwnProcess } from "./own_process.ts";

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
  connections?: number; // absent: 64
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

/** Fails unless every answer is a 200 or 202. */
export function runLoad(
  url: string,
  kind: LoadKind,
  options: Omit<ClosedLoop, "kind">,
): Promise<LoadResult> {
  return run({ url, loop: { kind, ...options } });
}

export function runOpenLoop(url: string, options: OpenLoop): Promise<Arrivals> {
  return run({ url, loop: options });
}

export function timesOf({ changes }: Arrivals, status: number): Times {
  return timesOfAll(changes.filter((change) => change.status === status).map(({ ms }) => ms));
}

interface Input {
  url: string;
  loop: ClosedLoop | OpenLoop;
}

function run<Result>(input: Input): Promise<Result> {
  return inOwnProcess(fileURLToPath(import.meta.url), new URL(input.url).host, input);
}

async function runClosed(url: URL, loop: ClosedLoop): Promise<LoadResult> {
  const { kind, first, count, connections = 64, ...callers } = loop;
  const requests = Array.from(
    { length: count },
    (_, i) => toBytes(url.host, kinds[kind](first + i, callers)),
  );
  const open = await Promise.all(Array.from({ length: connections }, () => connectToHttp(url)));
  return await closedLoop(open, requests, isAccepted);
}

function isAccepted(answer: Uint8Array): boolean {
  const status = statusOf(answer);
  return status === 200 || status === 202;
}

const tickMs = 2;
const patienceMs = 60_000;
const maxConnections = 4_000; // as many as a proxy in front might hold

async function runOpen(url: URL, { perSecond, seconds, first }: OpenLoop): Promise<Arrivals> {
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
        connection = await connectToHttp(url);
      }
      const answer = await connection.ask(toBytes(url.host, changeOf(number)));
      change.status = statusOf(answer);
      const isTold = change.status !== 503 || /\r\nretry-after: *\d/i.test(textOf(answer));
      if (!isTold) withoutRetryAfter++;
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
  await answerCaller(({ url, loop }: Input) =>
    "kind" in loop ? runClosed(new URL(url), loop) : runOpen(new URL(url), loop)
  );
}
