import { environment, SettingsError } from "./settings.ts";
import { reasonOf } from "./reason.ts";
import { type Log, startLog, type UserIds } from "./log.ts";
import { keepRunning, type Loop } from "./loop.ts";
import { MissingFlags, programOf, type Read, readWithin, type Service } from "./program.ts";
import { observeProcess } from "../telemetry/process_metrics.ts";
import type { App } from "../http/handle_request.ts";
import { type HttpOptions, serve } from "../http/serve.ts";
import { aborted, pause } from "./signals.ts";

// The life of a service: settings → HTTP and loops → stop signal → work in hand is finished.

interface Settings {
  http: HttpOptions;
  shutdownGraceMs: number;
  logUserIds: UserIds;
}

interface Lifecycle {
  log: Log;
  stop: AbortSignal; // work that only waits ends now
  abandon: AbortSignal; // work that is not finished by now is released
}

interface Parts {
  app: App;
  loops: Loop[];
  close(): Promise<void>;
}

export async function runService<Config extends Settings>(
  service: Service,
  readConfig: (read: Read) => Config,
  build: (config: Config, lifecycle: Lifecycle) => Parts,
): Promise<never> {
  const { name } = service;
  const log = startLog(name);
  observeProcess(name);
  surviveSocketErrors(log);
  preventDebugger(log);
  const config = orExit(() => readWithin(programOf(service), readConfig, environment), log);
  startLog(name, config.logUserIds);
  const stop = stopOnSignals(log);
  const abandon = new AbortController();
  const lifecycle = { log, stop, abandon: abandon.signal };
  const { app, loops, close } = orExit(() => build(config, lifecycle), log);
  const serving = serve(config.http, app, log, stop, config.shutdownGraceMs);
  const running = loops.map((loop) => keepRunning(loop, log, stop));
  await aborted(stop);

  // The last part of the grace is for releasing the rows that could not be finished.
  const releaseMs = Math.min(1_000, config.shutdownGraceMs / 4);
  const finished = Promise.all([serving, ...running]).then(() => true);
  const inTime = await Promise.race([finished, afterGrace(config.shutdownGraceMs - releaseMs)]);
  abandon.abort();
  if (!inTime) {
    log.warn("Shutdown grace of {ms} ms ended with work unfinished", {
      ms: config.shutdownGraceMs,
    });
  }
  await Promise.race([finished.then(close), afterGrace(releaseMs)]);
  log.info("Stopped");
  Deno.exit(0);
}

// Settings can also turn out wrong when they are used, for example if a file can't be read.
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

// On SIGUSR1 Deno opens a debugger on the loopback, for everybody on the machine, unless the
// process handles the signal itself.
function preventDebugger(log: Log): void {
  Deno.addSignalListener("SIGUSR1", () => log.warn("SIGUSR1 ignored: it would open a debugger"));
}

// A server that refuses a password or certificate may close the connection at a moment when the
// client library does not listen for errors. Such an error must not end the process; the code that
// uses the connection gets an error of its own.
function surviveSocketErrors(log: Log): void {
  globalThis.addEventListener("error", (event) => {
    const { code } = Object(event.error) as { code?: unknown };
    if (!/^(ECONN|EPIPE|EPERM)/.test(String(code)) && !event.message.includes("fatal alert")) {
      return;
    }
    event.preventDefault();
    log.warn("Connection lost: {reason}", { reason: reasonOf(event.error) });
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

async function afterGrace(ms: number): Promise<boolean> {
  await pause(ms, new AbortController().signal);
  return false;
}
