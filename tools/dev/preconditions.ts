// Problems that can be found before any server is started.
import { environmentName } from "../../shared/process/program.ts";
import { SettingsError } from "../../shared/process/settings.ts";
import { configs } from "../service_configs.ts";
import { serviceNames } from "../services.ts";
import { issuerPort, portOfIssuer } from "./issuer.ts";
import { defaultReceiverPort, receiverPort } from "./receiver_page.tsx";
import { devSettings, futureServers } from "./settings.ts";

type Read = (name: string) => string | undefined;

// Throws SettingsError with the problems of all services, each once.
export function checkSettings(read: Read): void {
  const settings = devSettings(read, futureServers);
  const problems = new Set<string>();
  for (const { readConfig } of Object.values(configs)) {
    try {
      readConfig((name) => settings[name] ?? read(name));
    } catch (error) {
      if (!(error instanceof SettingsError)) throw error;
      for (const problem of error.problems) problems.add(problem);
    }
  }
  if (problems.size > 0) throw new SettingsError([...problems].sort());
}

export function checkPorts(read: Read): void {
  const settings = devSettings(read, {});
  for (const service of serviceNames) {
    const name = `${environmentName(service)}_HTTP`;
    const hostname = settings[`${name}_HOST`] ?? "";
    checkPort(service, hostname, `${name}_PORT`, settings[`${name}_PORT`]);
  }
  const port = read(receiverPort) ?? defaultReceiverPort;
  checkPort("the receiver of webhooks", "127.0.0.1", receiverPort, port);
  const ofIssuer = portOfIssuer(read);
  if (ofIssuer !== undefined) checkPort("the issuer", "127.0.0.1", issuerPort, ofIssuer);
}

function checkPort(user: string, hostname: string, name: string, port: string | undefined): void {
  if (!/^\d{1,5}$/.test(port ?? "")) throw new Error(`${name} must be a port, not "${port}"`);
  try {
    Deno.listen({ hostname, port: Number(port) }).close();
  } catch (error) {
    if (!(error instanceof Deno.errors.AddrInUse)) throw error;
    throw new Error(
      `Port ${port} of ${hostname} is in use, perhaps by another \`deno task dev\`: stop it, ` +
        `or choose another port for ${user} with ${name}`,
    );
  }
}
