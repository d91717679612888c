// deno task chaos: runs the whole stack under load and faults, then checks every promise.
import { parseArgs } from "node:util";
import { type FaultKind, faultKinds } from "./plan.ts";
import { isGood, type Report, sumOf, textOfFigures, textOfInvariants } from "./report.ts";
import { run } from "./run.ts";
import { root } from "../root.ts";

const usage =
  `deno task chaos [--minutes N] [--seed S,…] [--faults KIND,…] [--rate N] [--users N] [--quiet]

  --minutes  how long faults are injected, for each seed (2)
  --seed     one run for each; "random" draws one and prints it (random)
  --faults   only these kinds: ${faultKinds.slice(0, 8).join(", ")},
             ${faultKinds.slice(8).join(", ")}
  --rate     requests a second (60)
  --users    all clients change entitlements of only this many users (hundreds)
  --quiet    do not print the faults as they happen

Each run leaves its report in .kenri/chaos. The exit code is 0 if everything healed and every
invariant held.`;

interface Options {
  minutes: number;
  seeds: number[];
  kinds: FaultKind[];
  changesPerSecond: number;
  users: number | undefined;
  quiet: boolean;
}

function readOptions(): Options {
  const { values } = parseArgs({
    args: Deno.args,
    options: {
      minutes: { type: "string", default: "2" },
      seed: { type: "string", default: "random" },
      faults: { type: "string", default: faultKinds.join() },
      rate: { type: "string", default: "60" },
      users: { type: "string" },
      quiet: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) {
    console.log(usage);
    Deno.exit(0);
  }
  const kinds = values.faults.split(",");
  const unknown = kinds.find((kind) => !faultKinds.includes(kind as FaultKind));
  if (unknown !== undefined) {
    throw new Error(`--faults does not know "${unknown}"; use ${faultKinds.join(", ")}`);
  }
  return {
    minutes: positive("minutes", values.minutes),
    seeds: values.seed.split(",").map((seed) =>
      seed === "random" ? Math.floor(Math.random() * 1_000_000) : wholeNumber("seed", seed)
    ),
    kinds: kinds as FaultKind[],
    changesPerSecond: positive("rate", values.rate),
    users: values.users === undefined ? undefined : wholeNumber("users", values.users),
    quiet: values.quiet,
  };
}

function positive(name: string, written: string): number {
  const value = Number(written);
  if (value > 0 && Number.isFinite(value)) return value;
  throw new Error(`--${name} must be a number above zero, not "${written}"`);
}

function wholeNumber(name: string, written: string): number {
  if (/^\d{1,15}$/.test(written)) return Number(written);
  const orRandom = name === "seed" ? ` or "random"` : "";
  throw new Error(`--${name} must be a whole number${orRandom}, not "${written}"`);
}

const chaosFolder = `${root}.kenri/chaos`;
const stopping = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  Deno.addSignalListener(signal, () => {
    if (stopping.signal.aborted) Deno.exit(130);
    console.log("Ending all faults and checking the run; press Ctrl-C again to stop at once");
    stopping.abort();
  });
}

async function runAll(options: Options): Promise<boolean> {
  const reports: Report[] = [];
  const startedAt = new Date().toISOString().slice(0, 19).replaceAll(":", "");
  for (const seed of options.seeds) {
    if (stopping.signal.aborted) break;
    const again = `deno task chaos --minutes ${options.minutes} --seed ${seed}` +
      (options.kinds.length < faultKinds.length ? ` --faults ${options.kinds.join()}` : "") +
      (options.changesPerSecond === 60 ? "" : ` --rate ${options.changesPerSecond}`) +
      (options.users === undefined ? "" : ` --users ${options.users}`);
    const folder = `${chaosFolder}/${startedAt}-seed-${seed}`;
    await Deno.mkdir(folder, { recursive: true });
    console.log(`\n${again}\n`);
    const say = (line: string) => console.log(line);
    const report = await run({ ...options, seed, folder, say, stop: stopping.signal });
    reports.push(report);
    console.log(`\n${textOfInvariants(report.invariants)}\n\n${textOfFigures(report.figures)}`);
    if (!report.healed) console.log(`\nNot healed: ${report.still}`);
    console.log(`\nKept in ${folder}; the same plan again: ${again}`);
  }
  if (reports.length > 1) await summarise(reports, `${chaosFolder}/${startedAt}-summary`);
  return reports.every(isGood);
}

async function summarise(reports: Report[], path: string): Promise<void> {
  const sum = sumOf(reports.map(({ figures }) => figures));
  await Deno.writeTextFile(`${path}.json`, `${JSON.stringify(sum, null, 2)}\n`);
  await Deno.writeTextFile(`${path}.txt`, `${textOfFigures(sum)}\n`);
  console.log(`\nAll runs together\n\n${textOfFigures(sum)}`);
}

try {
  Deno.exit(await runAll(readOptions()) ? 0 : 1);
} catch (error) {
  console.error(`${(error as Error).message}\n\n${usage}`);
  Deno.exit(2);
}
