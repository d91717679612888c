import { environment, SettingsError } from "./settings.ts";
import { reasonOf } from "./reason.ts";
import { type Log, startLog, type UserIds } from "./log.ts";
import { keepRunning, type Loop } from "./loop.ts";
import { MissingFlags, type Program, type Read, readWithin } from "./program.ts";
import { observeProcess } from "../telemetry/scrape.ts";
import type { App } from "../http/handle_request.ts";
import { type HttpOptions, serve } from "../http/serve.ts";
import { aborted, pause } from "./signals.ts";

// The life of a service: settings → HTTP and loops → stop signal → what is in hand is finished.

interface Settings {
  http: HttpOptions;
  shutdownGraceMs: number;
  logUserIds: UserIds;
}

interface Life {
  log: Log;
  abandon: AbortSignal; // what is not finished by now is given back
}

interface Service {
  app: App;
  loops: Loop[];
  close(): Promise<void>;
}

export async function runService<Config extends Settings>(
  program: Program,
  readConfig: (read: Read) => Config,
  build: (config: Config, life: Life) => Service,
): Promise<never> {
  const { name } = program;
  const log = startLog(name);
  observeProcess(name);
  surviveBrokenSockets(log);
  keepDebuggerShut(log);
  const config = orExit(() => readWithin(program, readConfig, environment), log);
  startLog(name, config.logUserIds);
  const stop = stopOnSignals(log);
  const abandon = new AbortController();
  const life = { log, abandon: abandon.signal };
  const { app, loops, close } = orExit(() => build(config, life), log);
  const serving = serve(config.http, app, log, stop, config.shutdownGraceMs);
  const running = loops.map((loop) => keepRunning(loop, log, stop));
  await aborted(stop);

  // The end of the grace is for giving back to its table what could not be finished.
  const giveBackMs = Math.min(1_000, config.shutdownGraceMs / 4);
  const finished = Promise.all([serving, ...running]).then(() => true);
  const inTime = await Promise.race([finished, graceOver(config.shutdownGraceMs - giveBackMs)]);
  abandon.abort();
  if (!inTime) log.warn("Not all was finished within {ms} ms", { ms: config.shutdownGraceMs });
  await Promise.race([finished.then(close), graceOver(giveBackMs)]);
  log.info("Stopped");
  Deno.exit(0);
}

// Settings also show to be wrong when they are used: a file that they name can't be read.
function orExit<Result>(work: () => Result, log: Log): Result {
  try {
    return work();
  } catch (error) {
    if (error instanceof MissingFlags) log.fatal(error.message);
    else if (!(error instanceof SettingsError)) throw error;
    else for (const problem of error.problems) log.fatal(`Setting {problem}`, { problem });
    Deno.exit(1);
  }
}

// By this signal Deno opens a debugger on the loopback, to whoever is on the machine. Not where somebody
// listens to it.
function keepDebuggerShut(log: Log): void {
  Deno.addSignalListener("SIGUSR1", () => log.warn("SIGUSR1 opens no debugger here"));
}

// A server that refuses us, by password or certificate, may break the connection at a moment when the
// client library listens to no errors on it. Whoever uses the connection finds out by itself.
function surviveBrokenSockets(log: Log): void {
  globalThis.addEventListener("error", (event) => {
    const { code } = Object(event.error) as { code?: unknown };
    if (!/^(ECONN|EPIPE|EPERM)/.test(String(code)) && !event.message.includes("fatal alert")) {
      return;
    }
    event.preventDefault();
    log.warn("A connection broke: {reason}", { reason: reasonOf(event.error) });
  });
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
