// The entry point of the image: runs one of the bundles beside it with the permissions that follow
// from its settings, and no others. Signals and the exit code pass through.
import { fileURLToPath } from "node:url";
import { readDatabaseUrls } from "../migrations/config.ts";
import { SettingsError } from "../shared/config.ts";
import { bundleArguments, bundleFlags, isServiceName } from "./services.ts";

const folder = fileURLToPath(new URL(".", import.meta.url)).replace(/\/$/, "");
const read = (name: string) => Deno.env.get(name);

function programArguments(name: string | undefined): string[] {
  if (isServiceName(name)) return bundleArguments(name, read, folder);
  if (name === "migrate") return migrateArguments();
  throw new SettingsError(["The command must be entitlement, notification or migrate"]);
}

function migrateArguments(): string[] {
  const databases = readDatabaseUrls(read);
  const addresses = databases.map(({ ownerUrl }) => {
    const { hostname, port } = new URL(ownerUrl);
    return `${hostname}:${port || 5432}`;
  });
  const environment = databases.map(({ service }) => service.toUpperCase())
    .flatMap((name) => [`${name}_DATABASE_URL`, `${name}_MIGRATION_DATABASE_URL`]);
  return [
    ...["run", ...bundleFlags],
    `--allow-read=${databases.map(({ service }) => `${folder}/${service}`).join()}`,
    `--allow-net=${[...new Set(addresses)].join()}`,
    ...[
      `--allow-env=${environment.join()},ENTITLEMENT_RETENTION_AUDIT_MONTHS`,
      "--ignore-env",
      `${folder}/migrate.js`,
    ],
  ];
}

try {
  const program = new Deno.Command("deno", { args: programArguments(Deno.args[0]) }).spawn();
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) {
    Deno.addSignalListener(signal, () => program.kill(signal));
  }
  Deno.exit((await program.status).code);
} catch (error) {
  if (!(error instanceof SettingsError)) throw error;
  for (const problem of error.problems) console.error(problem);
  Deno.exit(1);
}
