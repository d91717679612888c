// The flags with which `deno run` gives `provision` exactly the permissions it needs: the servers of
// NATS, the files for TLS, and the names of its own settings.
import { fileURLToPath } from "node:url";
import { environmentName } from "../../shared/config.ts";
import { tlsFiles } from "../../shared/tls.ts";
import { addressOf } from "../permissions.ts";
import { readConfig, schema } from "./config.ts";

// Throws SettingsError when nothing could be made with these settings.
export function provisionPermissions(read: (name: string) => string | undefined): string[] {
  const { nats } = readConfig(read);
  const addresses = nats.urls.split(",").map((url) => addressOf(url, 4222));
  const files = tlsFiles(nats.tls);
  return [
    `--allow-net=${[...new Set(addresses)].join()}`,
    ...(files.length > 0 ? [`--allow-read=${[...new Set(files)].join()}`] : []),
    `--allow-env=${Object.keys(schema.shape).map(environmentName).join()}`,
    "--ignore-env",
  ];
}

export function provisionArguments(read: (name: string) => string | undefined): string[] {
  const main = fileURLToPath(new URL("provision.ts", import.meta.url));
  const flags = ["--cached-only", "--no-remote", "--no-prompt"];
  return ["run", ...flags, ...provisionPermissions(read), main, ...Deno.args.slice(1)];
}
