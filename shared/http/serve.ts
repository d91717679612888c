import { Connections, toldWhenTaken } from "./connections.ts";
import { ApiError, unavailable } from "./errors.ts";
import { reasonOf } from "../process/reason.ts";
import { answerError, observeUnrouted } from "./app.ts";
import { Arrival, countRefusal, Places, refuseBadHost, refuseLongUrl } from "./limits.ts";
import type { Log } from "../process/log.ts";
import { protect } from "./headers.ts";
import { aborted, pause } from "../process/signals.ts";

// The HTTP server of a service, from the start to the stop signal.

export interface App {
  fetch(request: Request, arrival: Arrival): Response | Promise<Response>;
}

interface Address {
  hostname: string;
  port: number;
}

export interface HttpOptions extends Address {
  requestsAtOnce: number;
}

type Answer = Deno.ServeHandler<Deno.NetAddr>;

interface Server {
  http: Deno.HttpServer;
  closeAll(): void;
}

// Resolves when the last answer is given. Deno's server stops as soon as it can't accept a
// connection, which is when the process has as many open as it may. Then all of them are let go,
// which makes room, and the next server listens in its place.
export async function serve(
  { requestsAtOnce, ...address }: HttpOptions,
  app: App,
  log: Log,
  stop: AbortSignal,
  graceMs: number,
): Promise<void> {
  const answerInTurn = answerer(app, new Places(requestsAtOnce));
  const answer: Answer = async (request, info) =>
    protect(stop.aborted ? refuseAll() : await answerInTurn(request, info));
  let server = listenOrExit(address, answer, log);
  for (;;) {
    const reason = await Promise.race([server.http.finished.catch(reasonOf), aborted(stop)]);
    if (stop.aborted) return await closeDoor(server, graceMs);
    log.error("All connections are closed, because no more can be accepted: {reason}", { reason });
    server.closeAll();
    server = await listenAgain(address, answer, log, stop);
  }
}

// Sending an answer as a stream takes as long as a small request. So only some answers to known callers
// are sent as streams, which is enough to find a client that reads none. They are chosen at random,
// because a client that knew which ones could let another connection read those.
const maxAnswersToProbe = 32;

function probes(): () => boolean {
  let answersLeft = 1;
  return () => {
    if (--answersLeft > 0) return false;
    answersLeft = 1 + Math.floor(Math.random() * maxAnswersToProbe);
    return true;
  };
}

function answerer(app: App, places: Places): Answer {
  const connections = new Connections();
  const isProbe = probes();
  return async (request, info) => {
    const begun = connections.begin(info.remoteAddr);
    const turn = begun instanceof Promise ? await begun : begun;
    if (turn === undefined) return refuseWithoutBody();
    const arrival = new Arrival(places);
    let whenTaken = false;
    try {
      const answer = await answerArrival(app, request, arrival);
      if (arrival.isOfCaller && !isProbe()) return answer;
      const told = await toldWhenTaken(answer);
      whenTaken = told.body !== null;
      if (whenTaken) connections.endWhenTaken(turn, info.completed, () => arrival.leave());
      return told;
    } finally {
      if (!whenTaken) {
        connections.end(turn);
        arrival.leave();
      }
    }
  };
}

async function answerArrival(app: App, request: Request, arrival: Arrival): Promise<Response> {
  try {
    refuseLongUrl(request.url);
    refuseBadHost(request);
  } catch (error) {
    if (error instanceof ApiError) return refuse(error);
    throw error;
  }
  return await app.fetch(request, arrival);
}

// Only HTTP/2 can send such a request. An answer without a body is sent even if the client reads
// nothing.
function refuseWithoutBody(): Response {
  countRefusal("per_connection");
  observeUnrouted(503);
  return new Response(null, { status: 503, headers: { "Retry-After": "1" } });
}

function listenOrExit(address: Address, answer: Answer, log: Log): Server {
  try {
    return listen(address, answer, log);
  } catch (error) {
    const { hostname, port } = address;
    log.fatal("Can't listen on {address}: {error}", { address: `${hostname}:${port}`, error });
    Deno.exit(1);
  }
}

// The connections may not all be closed yet.
const retryMs = 100;
const maxTries = 50;

async function listenAgain(
  address: Address,
  answer: Answer,
  log: Log,
  stop: AbortSignal,
): Promise<Server> {
  for (let tries = 0; tries < maxTries; tries++) {
    try {
      return listen(address, answer, log);
    } catch {
      await pause(retryMs, stop);
    }
  }
  return listenOrExit(address, answer, log);
}

function listen(address: Address, answer: Answer, log: Log): Server {
  const end = new AbortController();
  const http = Deno.serve({
    ...address,
    signal: end.signal,
    onListen: (address) => log.info("Listening on {url}", { url: urlOf(address) }),
  }, answer);
  return { http, closeAll: () => end.abort() };
}

// The connection ends with this answer, so that the next request looks for another replica.
function refuseAll(): Response {
  const refusal = refuse(
    unavailable("the service is stopping, try again with the same Idempotency-Key"),
  );
  refusal.headers.set("Connection", "close");
  return refusal;
}

// Before it was looked at.
function refuse(error: ApiError): Response {
  observeUnrouted(error.status);
  return answerError(error);
}

// Closing cuts a connection whose request has arrived and was not yet read. So the server stays open
// for a while behind which everybody is refused: who was, and heeds Retry-After, comes back no sooner
// than a second later.
const refuseMs = 500;

async function closeDoor({ http }: Server, graceMs: number): Promise<void> {
  await pause(Math.min(refuseMs, graceMs / 4), new AbortController().signal);
  await http.shutdown();
}

function urlOf({ hostname, port }: Deno.NetAddr): string {
  return `http://${hostname.includes(":") ? `[${hostname}]` : hostname}:${port}`;
}
