import type { Log } from "../process/log.ts";
import { reasonOf } from "../process/reason.ts";
import { aborted, pause } from "../process/signals.ts";
import { type App, type Handler, requestHandler } from "./handle_request.ts";

// The HTTP server of a service, from the start to the stop signal.

interface Address {
  hostname: string;
  port: number;
}

export interface HttpOptions extends Address {
  requestsAtOnce: number;
}

interface Server {
  http: Deno.HttpServer;
  closeAll(): void;
}

// Resolves when the last answer has been sent. Deno's server stops when it can't accept a
// connection, which happens when the process has as many open files as it may. Then all connections
// are closed, which makes room, and a new server listens.
export async function serve(
  { requestsAtOnce, ...address }: HttpOptions,
  app: App,
  log: Log,
  stop: AbortSignal,
  graceMs: number,
): Promise<void> {
  const handler = requestHandler(app, requestsAtOnce, stop);
  let server = listenOrExit(address, handler, log);
  for (;;) {
    const reason = await Promise.race([server.http.finished.catch(reasonOf), aborted(stop)]);
    if (stop.aborted) return await closeServer(server, graceMs);
    log.error("All connections are closed, because no more can be accepted: {reason}", { reason });
    server.closeAll();
    server = await listenAgain(address, handler, log, stop);
  }
}

function listenOrExit(address: Address, handler: Handler, log: Log): Server {
  try {
    return listen(address, handler, log);
  } catch (error) {
    const { hostname, port } = address;
    log.fatal("Can't listen on {address}: {error}", { address: `${hostname}:${port}`, error });
    Deno.exit(1);
  }
}

// Some connections may not be closed yet.
const retryMs = 100;
const maxTries = 50;

async function listenAgain(
  address: Address,
  handler: Handler,
  log: Log,
  stop: AbortSignal,
): Promise<Server> {
  for (let tries = 0; tries < maxTries; tries++) {
    try {
      return listen(address, handler, log);
    } catch {
      await pause(retryMs, stop);
    }
  }
  return listenOrExit(address, handler, log);
}

function listen(address: Address, handler: Handler, log: Log): Server {
  const end = new AbortController();
  const http = Deno.serve({
    ...address,
    signal: end.signal,
    onListen: (address) => log.info("Listening on {url}", { url: urlOf(address) }),
  }, handler);
  return { http, closeAll: () => end.abort() };
}

// A connection whose request has arrived but was not read yet would be cut. So for a while the
// server still accepts requests and refuses them all. A client that obeys Retry-After waits for
// longer than that.
const refuseMs = 500;

async function closeServer({ http }: Server, graceMs: number): Promise<void> {
  await pause(Math.min(refuseMs, graceMs / 4), new AbortController().signal);
  await http.shutdown();
}

function urlOf({ hostname, port }: Deno.NetAddr): string {
  return `http://${hostname.includes(":") ? `[${hostname}]` : hostname}:${port}`;
}
