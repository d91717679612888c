// What the tools know of the two services: how their settings are read, and from them the flags
// with which `deno run` gives exactly the permissions they need.
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

// Throws SettingsError when the service could not start with these settings.
export function runArguments(
  name: ServiceName,
  read: (name: string) => string | undefined,
): string[] {
  const { readConfig, schema } = services[name];
  const environment = Object.keys(schema.shape).map(environmentName);
  const main = new URL(`../${name}/main.ts`, import.meta.url).pathname;
  const flags = permissionFlags(readConfig(read), environment);
  return ["run", "--cached-only", "--no-prompt", ...flags, main];
}
