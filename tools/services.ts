// What the tools know of the two services: how their settings are read, and from them the flags
// with which `deno run` gives exactly the permissions they need.
import { fileURLToPath } from "node:url";
import {
  readConfig as entitlementConfig,
  schema as entitlementSchema,
} from "../entitlement/config.ts";
import {
  readConfig as notificationConfig,
  schema as notificationSchema,
} from "../notification/config.ts";
import { environmentName } from "../shared/config.ts";
import { permissionFlags } from "./permissions.ts";

const services = {
  entitlement: { readConfig: entitlementConfig, schema: entitlementSchema },
  notification: { readConfig: notificationConfig, schema: notificationSchema },
};

export type ServiceName = keyof typeof services;

export function isServiceName(name: string | undefined): name is ServiceName {
  return name !== undefined && Object.hasOwn(services, name);
}

// What the service may do with these settings, and no more. Throws SettingsError when it could not
// start with them.
export function servicePermissions(
  name: ServiceName,
  read: (name: string) => string | undefined,
): string[] {
  const { readConfig, schema } = services[name];
  return permissionFlags(readConfig(read), Object.keys(schema.shape).map(environmentName));
}

// Most of what a batch allocates is garbage when the batch is done. In a young generation that is
// larger than a few batches it dies before it is copied: a fifth less processor time under load. The
// bound on the old one keeps the heap from growing for want of pressure, and below 512 MiB in all.
export const v8Flags =
  "--v8-flags=--min-semi-space-size=16,--max-semi-space-size=16,--max-old-space-size=320";

export function runArguments(
  name: ServiceName,
  read: (name: string) => string | undefined,
): string[] {
  const main = fileURLToPath(new URL(`../${name}/main.ts`, import.meta.url));
  const attached = fileURLToPath(new URL("attached.ts", import.meta.url));
  return [
    ...["run", "--cached-only", "--no-remote", "--no-prompt", v8Flags, `--preload=${attached}`],
    ...[...servicePermissions(name, read), main],
  ];
}

// A bundle stands alone: no deno.json is near that would switch Deno.cron on, and no module is
// looked for.
export const bundleFlags = [
  "--no-config",
  "--no-remote",
  "--no-npm",
  "--cached-only",
  "--no-prompt",
];

export function bundleArguments(
  name: ServiceName,
  read: (name: string) => string | undefined,
  folder: string,
): string[] {
  return [
    ...["run", ...bundleFlags],
    ...["--unstable-cron", v8Flags, ...servicePermissions(name, read), `${folder}/${name}.js`],
  ];
}
