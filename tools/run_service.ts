// deno task entitlement, notification, migrate, provision: runs one of them in the foreground with the
// permissions that follow from its settings, and no others. Signals and the exit code pass through.
import { SettingsError } from "../shared/config.ts";
import { migrationArguments } from "./migration.ts";
import { provisionArguments } from "./provision/arguments.ts";
import { isServiceName, runArguments } from "./services.ts";

const name = Deno.args[0];
const read = (variable: string) => Deno.env.get(variable);
try {
  const args = isServiceName(name)
    ? runArguments(name, read)
    : name === "provision"
    ? provisionArguments(read)
    : migrationArguments(read);
  const service = new Deno.Command(Deno.execPath(), { args }).spawn();
  Deno.addSignalListener("SIGUSR1", () => {}); // by which Deno would open a debugger
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) {
    Deno.addSignalListener(signal, () => service.kill(signal));
  }
  // `deno task`, which runs this, can be killed without a word.
  const starter = Deno.ppid;
  const watch = setInterval(() => {
    if (Deno.ppid === starter) return;
    clearInterval(watch);
    service.kill("SIGTERM");
  }, 500);
  const { code } = await service.status;
  Deno.exit(code);
} catch (error) {
  if (!(error instanceof SettingsError)) throw error;
  for (const problem of error.problems) console.error(problem);
  Deno.exit(1);
}
