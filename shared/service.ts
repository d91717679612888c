import { SettingsError } from "./config.ts";
import { unavailable } from "./errors.ts";
import { answerError } from "./http.ts";
import { type Log, startLog } from "./log.ts";
import { keepRunning, type Loop } from "./loop.ts";
import { aborted, pause } from "./signals.ts";

// The life of a service: settings → HTTP and loops → stop signal → what is in hand is finished.

interface Settings {
  http: { hostname: string; port: number };
  shutdownGraceMs: number;
}

interface Life {
  log: Log;
  abandon: AbortSignal; // what is not finished by now is given back
}

interface Service {
  app: { fetch(request: Request): Response | Promise<Response> };
  loops: Loop[];
  close(): Promise<void>;
}

export async function runService<Config extends Settings>(
  name: string,
  readConfig: () => Config,
  build: (config: Config, life: Life) => Service,
): Promise<never> {
  const log = startLog(name);
  const config = readOrExit(readConfig, log);
  const stop = stopOnSignals(log);
  const abandon = new AbortController();
  const { app, loops, close } = build(config, { log, abandon: abandon.signal });
  const answer = (request: Request) => stop.aborted ? refuse() : app.fetch(request);
  const server = listenOrExit(config.http, answer, log);
  const running = loops.map((loop) => keepRunning(loop, log, stop));
  await aborted(stop);

  // The end of the grace is for giving back to its table what could not be finished.
  const giveBackMs = Math.min(1_000, config.shutdownGraceMs / 4);
  const closed = closeDoor(server, config.shutdownGraceMs);
  const finished = Promise.all([closed, ...running]).then(() => true);
  const inTime = await Promise.race([finished, graceOver(config.shutdownGraceMs - giveBackMs)]);
  abandon.abort();
  if (!inTime) log.warn("Not all was finished within {ms} ms", { ms: config.shutdownGraceMs });
  await Promise.race([finished.then(close), graceOver(giveBackMs)]);
  log.info("Stopped");
  Deno.exit(0);
}

function readOrExit<Config>(readConfig: () => Config, log: Log): Config {
  try {
    return readConfig();
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    for (const problem of error.problems) log.fatal(`Setting {problem}`, { problem });
    Deno.exit(1);
  }
}

function listenOrExit(
  { hostname, port }: Settings["http"],
  answer: Deno.ServeHandler,
  log: Log,
): Deno.HttpServer {
  try {
    return Deno.serve({
      hostname,
      port,
      onListen: (address) => log.info("Listening on {url}", { url: urlOf(address) }),
    }, answer);
  } catch (error) {
    log.fatal("Can't listen on {address}: {error}", { address: `${hostname}:${port}`, error });
    Deno.exit(1);
  }
}

// The connection ends with this answer, so that the next request looks for another replica.
function refuse(): Response {
  const refusal = answerError(
    unavailable("the service is stopping, try again with the same Idempotency-Key"),
  );
  refusal.headers.set("Connection", "close");
  return refusal;
}

// Closing cuts a connection whose request has arrived and was not yet read. So the door stays open
// for a while behind which everybody is refused: who was, and heeds Retry-After, comes back no sooner
// than a second later.
const refuseMs = 500;

async function closeDoor(server: Deno.HttpServer, graceMs: number): Promise<void> {
  await graceOver(Math.min(refuseMs, graceMs / 4));
  await server.shutdown();
}

function urlOf({ hostname, port }: Deno.NetAddr): string {
  return `http://${hostname.includes(":") ? `[${hostname}]` : hostname}:${port}`;
}

function stopOnSignals(log: Log): AbortSignal {
  const stop = new AbortController();
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    Deno.addSignalListener(signal, () => {
      log.info("Stopping because of {signal}", { signal });
      stop.abort();
    });
  }
  return stop.signal;
}

async function graceOver(ms: number): Promise<boolean> {
  await pause(ms, new AbortController().signal);
  return false;
}
