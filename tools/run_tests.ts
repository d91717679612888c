// deno task test: everything, on a real PostgreSQL, NATS and Redis that it starts itself, or on given
// ones (KENRI_TEST_POSTGRES_URL, KENRI_TEST_NATS_URL, KENRI_TEST_REDIS_URL). Arguments go to
// `deno test`, so that `deno task test tests/changes/api_test.ts` runs one file. All output is
// searched for the secrets that the tests plant.
import { leaksInFolder, plantedPassword, plantedSettings } from "./planted.ts";
import { keepServersInMemory } from "./servers/in_memory.ts";
import { startServers } from "./servers/servers.ts";

const systemFolders = ["tests", "tools"];
const copies = [".kenri", "dist"]; // may contain copies of the project
// The tests wait for servers and processes more than they compute.
const filesAtOnce = Deno.env.get("DENO_JOBS") ?? `${navigator.hardwareConcurrency * 2}`;

keepServersInMemory();

interface Counts {
  passed: number;
  failed: number;
  ignored: number;
  failedFiles: string[];
}

const given = {
  postgres: Deno.env.get("KENRI_TEST_POSTGRES_URL"),
  nats: Deno.env.get("KENRI_TEST_NATS_URL"),
  redis: Deno.env.get("KENRI_TEST_REDIS_URL"),
};
const started = given.postgres && given.nats && given.redis
  ? undefined
  : await startServers({ password: plantedPassword, say: console.log });
const servers = {
  KENRI_TEST_POSTGRES_URL: given.postgres ?? started?.postgres.url ?? "",
  ...plantedSettings,
  KENRI_TEST_NATS_URL: given.nats ?? started?.nats.url ?? "",
  KENRI_TEST_REDIS_URL: given.redis ?? started?.redis.url ?? "",
};
const evidence = await Deno.makeTempDir({ prefix: "kenri-evidence-" });

const runs = Deno.args.length > 0 ? [await runSystemTests(Deno.args)] : [
  await runTests([`--ignore=${[...systemFolders, ...copies].join()}`]),
  await runSystemTests(["--parallel", ...systemFolders]),
];
await started?.stop();
const leaks = await leaksInFolder(evidence);
await Deno.remove(evidence, { recursive: true });

const total = (count: "passed" | "failed" | "ignored") =>
  runs.reduce((sum, counts) => sum + counts[count], 0);
console.log(`\n${total("passed")} passed, ${total("failed")} failed, ${total("ignored")} skipped`);
for (const { what, where, context } of leaks.slice(0, 20)) {
  console.log(`Leaked: ${what}, in ${where}: ${context}`);
}
if (leaks.length > 0) console.log(`\nSecrets leaked ${leaks.length} times`);
Deno.exit(total("failed") === 0 && total("passed") > 0 && leaks.length === 0 ? 0 : 1);

// On CI's shared machines a file that failed beside others is run once more on its own, and
// that is reported: what fails again is broken, what passes was short of time.
async function runSystemTests(args: string[]): Promise<Counts> {
  const first = await runTests(["--allow-all", ...args]);
  const { failedFiles } = first;
  if (!Deno.env.get("CI") || failedFiles.length === 0 || failedFiles.length > 3) return first;
  console.log(`\nFailed beside others, now once more alone: ${failedFiles.join(" ")}\n`);
  const alone = await runTests(["--allow-all", ...failedFiles]);
  return alone.failed > 0 ? first : { ...first, passed: first.passed + first.failed, failed: 0 };
}

type Write = typeof Deno.stdout.write;

// Prints the output as it arrives, and takes the counts from the runner's last line.
async function runTests(args: string[]): Promise<Counts> {
  const runner = new Deno.Command(Deno.execPath(), {
    args: ["test", "--no-check", "--no-prompt", ...args],
    env: {
      ...servers,
      KENRI_TEST_EVIDENCE: evidence,
      DENO_JOBS: filesAtOnce,
      NO_COLOR: "1",
    },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  let output = "";
  const passOn = async (stream: ReadableStream<Uint8Array>, to: { write: Write }) => {
    const decoder = new TextDecoder();
    for await (const bytes of stream) {
      await to.write(bytes);
      const text = decoder.decode(bytes, { stream: true });
      await Deno.writeTextFile(`${evidence}/output`, text, { append: true });
      output = (output + text).slice(-10_000);
    }
  };
  await Promise.all([passOn(runner.stdout, Deno.stdout), passOn(runner.stderr, Deno.stderr)]);
  const { success } = await runner.status;
  const count = (name: string) =>
    Number(output.match(new RegExp(`(\\d+) ${name}`, "g"))?.at(-1)?.split(" ")[0] ?? 0);
  const failures = output.match(/ FAILURES [^]*$/)?.[0] ?? "";
  const counts = {
    passed: count("passed"),
    failed: count("failed"),
    ignored: count("ignored"),
    failedFiles: [
      ...new Set(failures.match(/[\w./-]+_test\.ts(?=:\d+:\d+$| \(uncaught error\)$)/gm)),
    ],
  };
  // A file that can't be loaded fails without being counted.
  return success || counts.failed > 0 ? counts : { ...counts, failed: 1 };
}
