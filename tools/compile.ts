// deno task compile [target …]: each service as one self-contained binary in dist/bin.
//
// A binary's permissions are fixed when it is made, so the settings are read here as they are at a
// start: it may listen on, and connect to, the addresses that they name, and no others. All other
// settings, passwords among them, are read when the binary starts; none is kept in it.
//
// deno task compile:check goes through all of it but the download of the base binary, for which the
// running Deno stands in. What comes out is no service, and is thrown away.
import { fileURLToPath } from "node:url";
import { SettingsError } from "../shared/process/settings.ts";
import { bundleAll } from "./bundle.ts";
import { type Build, compileArguments } from "./compile_arguments.ts";
import { devSettings, futureServers } from "./dev/settings.ts";
import { checkSettings } from "./check_settings.ts";
import type { ServiceName } from "./services.ts";

// Not Windows: it knows no SIGTERM, by which a service is stopped.
const targets = [
  "x86_64-unknown-linux-gnu",
  "aarch64-unknown-linux-gnu",
  "x86_64-apple-darwin",
  "aarch64-apple-darwin",
];
const services: ServiceName[] = ["entitlement", "notification"];

async function compile(
  service: ServiceName,
  build: Build,
  env: Record<string, string> = {},
): Promise<void> {
  const { success } = await new Deno.Command(Deno.execPath(), {
    args: compileArguments(service, build),
    env,
    stdin: "null",
  }).spawn().status;
  if (!success) throw new Error(`"${service}" could not be compiled for ${build.target}`);
}

async function compileAll(wanted: string[]): Promise<void> {
  const unknown = wanted.filter((target) => !targets.includes(target));
  if (unknown.length > 0) {
    throw new Error(`There is no target "${unknown[0]}", only: ${targets.join(", ")}`);
  }
  const bin = fileURLToPath(new URL("../dist/bin", import.meta.url));
  const read = (name: string) => Deno.env.get(name);
  for (const service of services) checkSettings(service, read); // before anything is made
  await withBundles(async (bundles) => {
    for (const target of wanted.length > 0 ? wanted : targets) {
      for (const service of services) {
        const output = `${bin}/${service}-${target}`;
        await compile(service, { bundles, output, target, read });
      }
    }
  });
}

async function check(): Promise<void> {
  const settings = devSettings(() => undefined, futureServers);
  await withBundles(async (bundles) => {
    for (const service of services) {
      const build = {
        bundles,
        output: `${bundles}/not-a-service`,
        target: Deno.build.target,
        read: (name: string) => settings[name],
      };
      await compile(service, build, { DENORT_BIN: Deno.execPath() });
    }
  });
}

async function withBundles(work: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "kenri-compile-" });
  try {
    await bundleAll(folder, () => {});
    await work(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

try {
  await (Deno.args[0] === "--check" ? check() : compileAll(Deno.args));
} catch (error) {
  const problems = error instanceof SettingsError ? error.problems : [(error as Error).message];
  for (const problem of problems) console.error(problem);
  Deno.exit(1);
}
