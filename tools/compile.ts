// deno task compile [target …]: each service as one self-contained binary in dist/bin.
//
// A binary's permissions are fixed when it is compiled, so the settings are read here: the binary may
// listen on, and connect to, only the addresses that they name. All other settings, such as passwords,
// are read when the binary starts; none is kept in it.
//
// deno task compile:check does the same without downloading the base binary: it uses the running Deno
// instead. The result is not a working service and is deleted.
import { fileURLToPath } from "node:url";
import { SettingsError } from "../shared/process/settings.ts";
import { bundleAll } from "./bundle.ts";
import { type Build, compileArguments } from "./compile_arguments.ts";
import { devSettings, futureServers } from "./dev/settings.ts";
import { configs } from "./service_configs.ts";
import { type ServiceName, serviceNames } from "./services.ts";

// Windows is left out, because it has no SIGTERM, which stops a service.
const targets = [
  "x86_64-unknown-linux-gnu",
  "aarch64-unknown-linux-gnu",
  "x86_64-apple-darwin",
  "aarch64-apple-darwin",
];

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
  if (!success) {
    throw new Error(`${service} could not be compiled for ${build.target}; the reason is above`);
  }
}

async function compileAll(wanted: string[]): Promise<void> {
  const unknown = wanted.filter((target) => !targets.includes(target));
  if (unknown.length > 0) {
    throw new Error(`Unknown target "${unknown[0]}"; use ${targets.join(", ")}`);
  }
  const bin = fileURLToPath(new URL("../dist/bin", import.meta.url));
  const read = (name: string) => Deno.env.get(name);
  for (const service of serviceNames) configs[service]?.readConfig(read); // before anything is made
  await withBundles(async (bundles) => {
    for (const target of wanted.length > 0 ? wanted : targets) {
      for (const service of serviceNames) {
        const output = `${bin}/${service}-${target}`;
        await compile(service, { bundles, output, target, read });
      }
    }
  });
}

async function check(): Promise<void> {
  const settings = devSettings(() => undefined, futureServers);
  await withBundles(async (bundles) => {
    for (const service of serviceNames) {
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
