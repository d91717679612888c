// Runs `deno task ops` like an operator.
import { keep } from "../../tools/servers/evidence.ts";
import * as programs from "../../services.ts";
import type { Service } from "../../shared/process/program.ts";
import { root } from "../../tools/root.ts";

export interface Output {
  code: number;
  output: string;
  errors: string;
}

interface Urls {
  entitlement: { url: string };
  notification: { url: string };
  account?: { url: string };
}

export function ops(
  { entitlement, notification, account }: Urls,
  ...args: string[]
): Promise<Output> {
  const services = { entitlement, notification, ...(account ? { account } : {}) };
  return runOps("ops/ops.ts", services, args);
}

// The oldest two are asked even where a test has no url of theirs: they are away.
const always = ["entitlement", "notification"];

/** The services of `services.ts` that a test does not run. */
export function notDeployed(isGiven: (name: string) => boolean): string {
  return Object.values<Service>(programs)
    .filter(({ name, looks }) => looks && !always.includes(name) && !isGiven(name))
    .map(({ name }) => name).join();
}

/** Runs it with the services of this file, each at its url. */
export async function runOps(
  file: string,
  services: Record<string, { url: string }>,
  args: string[],
): Promise<Output> {
  const without = notDeployed((name) => Object.hasOwn(services, name));
  const urls = Object.entries(services).flatMap(([name, { url }]) => [`--${name}`, url]);
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: [
      ...["run", "--quiet", "--no-remote", "--allow-net", "--allow-env"],
      ...[`${root}${file}`, ...args, ...urls],
    ],
    env: { NO_COLOR: "1", USER: "kim", KENRI_WITHOUT: without },
    stdin: "null",
  }).output();
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  keep("debug.ops", `${text(stdout)}${text(stderr)}`);
  return { code, output: text(stdout), errors: text(stderr) };
}
