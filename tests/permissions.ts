// What a service may do with its permissions, tried out.
import { fileURLToPath } from "node:url";
import { type ServiceName, servicePermissions } from "../tools/services.ts";
import type { Settings } from "./services.ts";

const probe = fileURLToPath(new URL("permissions_probe.ts", import.meta.url));

/** What becomes of each attempt under the permissions that the service gets with these settings. */
export async function outcomesFor(
  service: ServiceName,
  settings: Settings,
  attempts: string[][],
): Promise<string[]> {
  const { stdout } = await new Deno.Command(Deno.execPath(), {
    args: [
      ...["run", "--cached-only", "--no-remote", "--no-prompt", "--no-check"],
      ...servicePermissions(service, (name) => settings[name]),
      ...[probe, JSON.stringify(attempts)],
    ],
    env: { ...settings, SECRET: "s", ENTITLEMENT_SECRET: "s", PGPASSWORD: "s", NO_COLOR: "1" },
    stderr: "inherit",
  }).output();
  const results: string[] = JSON.parse(new TextDecoder().decode(stdout));
  return results.map((result, i) => `${attempts[i]?.join(" ")}: ${result}`);
}

export function all(attempts: string[][], result: string): string[] {
  return attempts.map((attempt) => `${attempt.join(" ")}: ${result}`);
}
