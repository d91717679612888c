// The flags with which `deno run` gives the migrations exactly the permissions they need: the owners'
// addresses, their SQL, and the names of their own settings.
import { fileURLToPath } from "node:url";
import { readDatabaseUrls, schema } from "../migrations/config.ts";
import { environmentName } from "../shared/config.ts";
import { tlsFiles } from "../shared/tls.ts";
import { addressOf } from "./permissions.ts";

// Throws SettingsError when they could not be applied with these settings.
export function migrationPermissions(
  read: (name: string) => string | undefined,
  folder: string, // with the SQL of each service
): string[] {
  const databases = readDatabaseUrls(read);
  const addresses = databases.map(({ ownerUrl }) => addressOf(ownerUrl, 5432));
  const files = databases.flatMap(({ service, tls }) => [`${folder}/${service}`, ...tlsFiles(tls)]);
  return [
    `--allow-net=${[...new Set(addresses)].join()}`,
    `--allow-read=${[...new Set(files)].join()}`,
    `--allow-env=${Object.keys(schema.shape).map(environmentName).join()}`,
    "--ignore-env",
  ];
}

export function migrationArguments(read: (name: string) => string | undefined): string[] {
  const folder = fileURLToPath(new URL("../migrations", import.meta.url));
  const flags = ["--cached-only", "--no-remote", "--no-prompt"];
  return ["run", ...flags, ...migrationPermissions(read, folder), `${folder}/migrate.ts`];
}
