// deno task entitlement: runs one service in the foreground with the permissions that follow from
// its settings, and no others. Signals and the exit code pass through.
import { environmentName, SettingsError } from "../shared/config.ts";
import {
  readConfig as entitlementConfig,
  schema as entitlementSchema,
} from "../entitlement/config.ts";
import { permissionFlags } from "./permissions.ts";

const services = {
  entitlement: { readConfig: entitlementConfig, schema: entitlementSchema },
};

const name = Deno.args[0] as keyof typeof services;
const { readConfig, schema } = services[name];
try {
  const config = readConfig((name) => Deno.env.get(name));
  const flags = permissionFlags(config, Object.keys(schema.shape).map(environmentName));
  const main = new URL(`../${name}/main.ts`, import.meta.url).pathname;
  const service = new Deno.Command(Deno.execPath(), {
    args: ["run", "--cached-only", "--no-prompt", ...flags, main],
  }).spawn();
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) {
    Deno.addSignalListener(signal, () => service.kill(signal));
  }
  const { code } = await service.status;
  Deno.exit(code);
} catch (error) {
  if (!(error instanceof SettingsError)) throw error;
  for (const problem of error.problems) console.error(problem);
  Deno.exit(1);
}
