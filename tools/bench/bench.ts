// deno task bench [--quick] [--json] [--only NAME]: measures what the services can do. Each figure is
// measured in turns with its limit, in the same run.
import { startServers } from "../servers/servers.ts";
import { startList, startReplay } from "./answers.ts";
import { besideDueOf } from "./beside_due.ts";
import { startCommit, startCommit256, startReserve } from "./commit.ts";
import { startConsumeDrain } from "./consume.ts";
import { startDue } from "./due.ts";
import { startDueCrash } from "./due_crash.ts";
import { startBrokerDrain, startDueDrain } from "./due_drain.ts";
import { startBrokerExact, startDueExact } from "./due_exact.ts";
import { makeWalFiles } from "./database.ts";
import { startDeliver, startDeliverDrain } from "./deliver.ts";
import { beforeFutureOf, fullOf, heldOf, hotOf, insteadOf, replicasOf } from "./growth.ts";
import { startLatency, startLatencyAtHalf } from "./latency.ts";
import { machineFacts } from "./machine.ts";
import { plotOf } from "./plot.ts";
import { startJoin, startPair } from "./join.ts";
import { startMatchLatency } from "./match_latency.ts";
import { startMe } from "./me.ts";
import { startNotification } from "./notification.ts";
import { startOrders, startOrdersBesideDead, startOrdersByKey } from "./orders.ts";
import { startPipeline } from "./pipeline.ts";
import { startProfile } from "./profile.ts";
import { startReceive, startReceiveDrain } from "./receive.ts";
import { startRelay } from "./relay.ts";
import { startRelayDrain } from "./relay_drain.ts";
import { type Line, lineOf, type Round, tableOf } from "./report.ts";
import { startSoak } from "./soak.ts";
import { startSuspension } from "./suspension.ts";
import { startWebhookLatency } from "./webhook_latency.ts";
import type { Bench, StartWork, Work } from "./work.ts";
import { root } from "../root.ts";

const works: Record<string, StartWork> = {
  commit: startCommit,
  "commit-256": startCommit256,
  replay: startReplay,
  list: startList,
  relay: startRelay,
  receive: startReceive,
  deliver: startDeliver,
  pipeline: startPipeline,
  notification: startNotification,
  latency: startLatency,
  "latency-half": startLatencyAtHalf,
  "relay-full": fullOf(startRelayDrain, "relay"),
  "receive-full": fullOf(startReceiveDrain, "receive"),
  "deliver-full": fullOf(startDeliverDrain, "deliver"),
  "relay-held": heldOf(startRelayDrain, "relay"),
  "receive-held": heldOf(startReceiveDrain, "receive"),
  "deliver-held": heldOf(startDeliverDrain, "deliver"),
  "relay-2": replicasOf(startRelayDrain, "relay", 2),
  "relay-4": replicasOf(startRelayDrain, "relay", 4),
  "relay-8": replicasOf(startRelayDrain, "relay", 8),
  "consume-2": replicasOf(startConsumeDrain, "consume", 2),
  "consume-4": replicasOf(startConsumeDrain, "consume", 4),
  "consume-8": replicasOf(startConsumeDrain, "consume", 8),
  "relay-hot": hotOf(startRelayDrain, "relay_hot"),
  "relay-hot-3": hotOf(startRelayDrain, "relay_hot_3", { replicas: 3 }),
  "relay-hot-wiped": hotOf(startRelayDrain, "relay_hot_wiped", { wiped: true }),
  "deliver-hot": hotOf(startDeliverDrain, "deliver_hot"),
  "deliver-hot-3": hotOf(startDeliverDrain, "deliver_hot_3", { replicas: 3 }),
  reserve: startReserve,
  due: startDue,
  "due-future": beforeFutureOf(startDueDrain, "due"),
  "due-hot": hotOf(startDueDrain, "due_hot"),
  "commit-due": besideDueOf("commit_due"),
  "commit-due-hot": besideDueOf("commit_due_hot", 40),
  "due-exact": startDueExact,
  "due-exact-broker": startBrokerExact,
  "due-broker": insteadOf(startBrokerDrain, startDueDrain, "due_broker"),
  "due-crash": startDueCrash,
  orders: startOrders,
  "orders-dead": startOrdersBesideDead,
  "orders-key": startOrdersByKey,
  "webhook-latency": startWebhookLatency,
  me: startMe,
  profile: startProfile,
  suspension: startSuspension,
  join: startJoin,
  pair: startPair,
  "match-latency": startMatchLatency,
  soak: startSoak,
};
const onlyWhenNamed = ["soak", "due-broker", "due-exact-broker", "due-crash"];

interface Options {
  quick: boolean;
  json: boolean;
  names: string[];
}

function readOptions(args: string[]): Options {
  const usual = Object.keys(works).filter((name) => !onlyWhenNamed.includes(name));
  const options: Options = { quick: false, json: false, names: usual };
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
        refuse(`Unknown option ${args[i]}`);
    }
  }
  const unknown = options.names.find((name) => !Object.hasOwn(works, name));
  if (unknown !== undefined) refuse(`--only takes ${Object.keys(works).join()}, not "${unknown}"`);
  return options;
}

function refuse(problem: string): never {
  console.error(`${problem}\nUsage: deno task bench [--quick] [--json] [--only NAME,...]`);
  Deno.exit(2);
}

/** The first round is a warm-up and does not count. */
async function measure(work: Work, { quick }: Bench): Promise<Round[]> {
  if (work.once) return [{ limits: [], work: await work.measure() }];
  const rounds: Round[] = [];
  for (let i = 0; i <= (quick ? 3 : 5); i++) {
    const limits: number[] = [];
    for (const limit of work.limits) limits.push(await limit.measure());
    rounds.push({ limits, work: await work.measure() });
  }
  return rounds.slice(1);
}

const { quick, json, names } = readOptions(Deno.args);
await using servers = await startServers({
  postgresSettings: {
    track_commit_timestamp: "on", // latencies are measured from the time of the commit
    min_wal_size: "1GB", // the files that were made are kept
  },
});
const machine = await machineFacts(servers); // without load
await makeWalFiles(servers.postgres);
const lines: Line[] = [];
for (const name of names) {
  if (!json) console.error(`measuring ${name} …`);
  const bench = { servers, quick };
  await using work = await (works[name] as StartWork)(bench);
  lines.push(lineOf(name, work, await measure(work, bench)));
}
const folder = `${root}dist/bench`;
await Deno.mkdir(folder, { recursive: true });
const report = JSON.stringify({ quick, machine, lines }, null, 2);
await Deno.writeTextFile(`${folder}/bench.json`, `${report}\n`);
await Deno.writeTextFile(`${folder}/bench.svg`, plotOf(lines));
if (json) console.log(report);
else {
  console.log(tableOf(lines));
  const facts = Object.entries(machine).map(([name, fact]) => `${name} ${fact}`);
  console.log(
    `\n${facts.join(" · ")}\nThe results are also in dist/bench/bench.json and bench.svg`,
  );
}
