// deno task bench [--quick] [--json] [--only NAME]: what the services can do, each line measured
// together with its limit in the same run, in turns.
import { startServers } from "../servers/servers.ts";
import { startCommit } from "./commit.ts";
import { startDeliver } from "./deliver.ts";
import { startLatency } from "./latency.ts";
import { startReceive } from "./receive.ts";
import { startRelay } from "./relay.ts";
import { type Line, lineOf, type Round, tableOf } from "./report.ts";
import type { Bench, StartWork, Work } from "./work.ts";

const works: Record<string, StartWork> = {
  commit: startCommit,
  relay: startRelay,
  receive: startReceive,
  deliver: startDeliver,
  latency: startLatency,
};

interface Options {
  quick: boolean;
  json: boolean;
  names: string[];
}

function readOptions(args: string[]): Options {
  const options: Options = { quick: false, json: false, names: Object.keys(works) };
  for (let i = 0; i < args.length; i++) {
    switch (args[i]) {
      case "--quick":
        options.quick = true;
        break;
      case "--json":
        options.json = true;
        break;
      case "--only":
        options.names = (args[++i] ?? "").split(",");
        break;
      default:
        refuse(`unknown option ${args[i]}`);
    }
  }
  const unknown = options.names.find((name) => !Object.hasOwn(works, name));
  if (unknown !== undefined) refuse(`--only takes ${Object.keys(works).join()}, not "${unknown}"`);
  return options;
}

function refuse(problem: string): never {
  console.error(`${problem}\nusage: deno task bench [--quick] [--json] [--only NAME,...]`);
  Deno.exit(2);
}

/** The first round only warms everything up. */
async function measure(work: Work, { quick }: Bench): Promise<Round[]> {
  const rounds: Round[] = [];
  for (let i = 0; i <= (quick ? 3 : 5); i++) {
    const limits: number[] = [];
    for (const limit of work.limits) limits.push(await limit.measure());
    rounds.push({ limits, work: await work.measure() });
  }
  return rounds.slice(1);
}

const { quick, json, names } = readOptions(Deno.args);
await using servers = await startServers();
const lines: Line[] = [];
for (const name of names) {
  if (!json) console.error(`measuring ${name} …`);
  const bench = { servers, quick };
  await using work = await (works[name] as StartWork)(bench);
  lines.push(lineOf(name, work, await measure(work, bench)));
}
console.log(json ? JSON.stringify({ quick, lines }, null, 2) : tableOf(lines));
