// Problems that can be found before any server is started.
import { environmentName } from "../../shared/process/program.ts";
import { configs } from "../service_configs.ts";
import { serviceNames } from "../services.ts";
import { devSettings, futureServers } from "./settings.ts";

type Read = (name: string) => string | undefined;

// Throws SettingsError with all problems.
export function checkSettings(read: Read): void {
  const settings = devSettings(read, futureServers);
  for (const { readConfig } of Object.values(configs)) {
    readConfig((name) => settings[name] ?? read(name));
  }
}

export function checkPorts(read: Read): void {
  const settings = devSettings(read, {});
  for (const service of serviceNames) {
    const name = `${environmentName(service)}_HTTP`;
    const hostname = settings[`${name}_HOST`] ?? "";
    const port = Number(settings[`${name}_PORT`]);
    try {
      Deno.listen({ hostname, port }).close();
    } catch (error) {
      if (!(error instanceof Deno.errors.AddrInUse)) throw error;
      throw new Error(
        `Port ${port} of ${hostname} is in use, perhaps by another \`deno task dev\`: stop it, ` +
          `or choose another port for ${service} with ${name}_PORT`,
      );
    }
  }
}
