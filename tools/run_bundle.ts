// The entry point of the image: runs one of the bundles beside it with the permissions that follow
// from its settings, and no others. Signals and the exit code pass through.
import { fileURLToPath } from "node:url";
import { SettingsError } from "../shared/config.ts";
import { migrationPermissions } from "./migration.ts";
import { provisionPermissions } from "./provision/arguments.ts";
import { bundleArguments, bundleFlags, isServiceName } from "./services.ts";

const folder = fileURLToPath(new URL(".", import.meta.url)).replace(/\/$/, "");
const read = (name: string) => Deno.env.get(name);

function programArguments(name: string | undefined): string[] {
  if (isServiceName(name)) return bundleArguments(name, read, folder);
  if (name === "migrate") {
    return ["run", ...bundleFlags, ...migrationPermissions(read, folder), `${folder}/migrate.js`];
  }
  if (name === "provision") {
    return ["run", ...bundleFlags, ...provisionPermissions(read), `${folder}/provision.js`];
  }
  throw new SettingsError(["The command must be entitlement, notification, migrate or provision"]);
}

try {
  const program = new Deno.Command("deno", { args: programArguments(Deno.args[0]) }).spawn();
  Deno.addSignalListener("SIGUSR1", () => {}); // by which Deno would open a debugger
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) {
    Deno.addSignalListener(signal, () => program.kill(signal));
  }
  Deno.exit((await program.status).code);
} catch (error) {
  if (!(error instanceof SettingsError)) throw error;
  for (const problem of error.problems) console.error(problem);
  Deno.exit(1);
}
