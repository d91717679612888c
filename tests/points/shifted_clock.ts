// A service whose clock jumps by a given time: at once, or when it gets SIGUSR2, as if somebody had set
// the clock of its machine. Timers and performance.now() are not affected by that.
import { fileURLToPath } from "node:url";
import {
  type ServiceProcess,
  type Settings,
  startService,
} from "../../tools/servers/service_process.ts";
import { runArguments, type ServiceName } from "../../tools/services.ts";
import { preloading } from "../support/preload.ts";

const variable = "KENRI_TEST_CLOCK_SHIFT_MS";
const preload = fileURLToPath(new URL("shift_clock.ts", import.meta.url));

export function startShifted(
  settings: Settings,
  { ms, when }: { ms: number; when: "at once" | "later" },
  service: ServiceName = "entitlement",
): Promise<ServiceProcess> {
  return startService(service, {
    ...settings,
    [variable]: JSON.stringify({ ms, when }),
  }, {
    arguments: (name, read) => preloading(preload, variable, runArguments(name, read)),
  });
}
