import { reasonOf } from "./reason.ts";
import { StartRefused } from "./start_refused.ts";
import type { Log } from "./log.ts";

export interface Loop {
  name: string;
  // Works until the signal is aborted.
  run(signal: AbortSignal): Promise<void>;
}

// Starts a loop. Each minute its cron job, the watchdog, starts it again if it has ended. Resolves
// when the loop has ended after the stop signal.
export async function keepRunning(loop: Loop, log: Log, stop: AbortSignal): Promise<void> {
  let running: Promise<void> | undefined;
  const start = () => {
    running ??= loop.run(stop)
      .catch((error) => {
        log.error("Loop {loop} ended: {error}", { loop: loop.name, error: reasonOf(error) });
        if (error instanceof StartRefused) Deno.exit(1);
      })
      .finally(() => running = undefined);
  };
  start();
  await Deno.cron(`${loop.name} watchdog`, "* * * * *", { signal: stop }, start);
  await running;
}
