// Tries what a service may do with its permissions.
import { fileURLToPath } from "node:url";
import { bundleArguments, runArguments, type ServiceName } from "../../tools/services.ts";
import { entryPoint, imageCommand } from "./image.ts";
import type { Program, Settings } from "../../tools/servers/service_process.ts";

/** The command that starts a service, without its program. */
export const ways = {
  "from sources": (name, read) => runArguments(name, read).slice(0, -1),
  "from a bundle": (name, read) => bundleArguments(name, read, "").slice(0, -1),
  "in the image": (name, read) => [...entryPoint(), ...imageCommand(name, read).slice(0, -1)],
} satisfies Record<string, Program["arguments"]>;

const probe = fileURLToPath(new URL("permissions_probe.ts", import.meta.url));

/** The outcomes of the attempts in a process that is started like the service. */
export async function outcomesFor(
  service: ServiceName,
  settings: Settings,
  attempts: string[][],
  way: Program["arguments"] = ways["from sources"],
): Promise<string[]> {
  const { stdout } = await new Deno.Command(Deno.execPath(), {
    args: [...way(service, (name) => settings[name]), probe, JSON.stringify(attempts)],
    env: { ...settings, SECRET: "s", ENTITLEMENT_SECRET: "s", PGPASSWORD: "s", NO_COLOR: "1" },
    stderr: "inherit",
  }).output();
  const results: string[] = JSON.parse(new TextDecoder().decode(stdout));
  return results.map((result, i) => `${attempts[i]?.join(" ")}: ${result}`);
}

export function all(attempts: string[][], result: string): string[] {
  return attempts.map((attempt) => `${attempt.join(" ")}: ${result}`);
}
