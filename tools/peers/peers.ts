// deno task bench:peers [--quick] [--json]: the same waiting events are published by our relay, by
// known libraries and by loops written by hand, in turns.
import { makeWalFiles } from "../bench/database.ts";
import { machineFacts } from "../bench/machine.ts";
import { aligned, fine, range, rate, type Spread, spread } from "../bench/report.ts";
import { root } from "../root.ts";
import { makeDatabase } from "../servers/databases.ts";
import { connectTo } from "../servers/nats_client.ts";
import { startServers } from "../servers/servers.ts";
import { type Name, names } from "./contender.ts";
import {
  type Contender,
  type Measured,
  type Place,
  startLibrary,
  startRelay,
} from "./contenders.ts";
import { startLibraryProcess } from "./library_process.ts";

const rounds = 3;
const fewKeys = 40;
const atMostSeconds = 12; // what is slower than that gets fewer events

interface Line {
  name: string;
  isOrdered: boolean;
  keys: number;
  events: number;
  late: number;
  perSecond: Spread;
  relayTimes: Spread; // our relay's rate as a multiple of this one, round by round
}

function readOptions(args: string[]): { quick: boolean; json: boolean } {
  const unknown = args.find((arg) => arg !== "--quick" && arg !== "--json");
  if (unknown !== undefined) {
    console.error(`Unknown option ${unknown}\nUsage: deno task bench:peers [--quick] [--json]`);
    Deno.exit(2);
  }
  return { quick: args.includes("--quick"), json: args.includes("--json") };
}

const isLoop = (name: Name) => name.startsWith("loop");

async function startAll(place: Place, events: number): Promise<Contender[]> {
  const contenders = [await startRelay(place, events)];
  for (const name of names) {
    if (!isLoop(name)) contenders.push(await startLibrary(place, name, true));
    contenders.push(await startLibrary(place, name, false));
  }
  return contenders;
}

/** The first round is a warm-up, with fewer events. It shows how many each can have. */
async function measure(
  contenders: Contender[],
  events: number,
  keys: number,
  say: (line: string) => void,
): Promise<Line[]> {
  const wanted = new Map<Contender, number>();
  const keysOf = (events: number) => Math.min(keys, events / 2);
  const found = new Map<Contender, Measured[]>(contenders.map((one) => [one, []]));
  for (let round = 0; round <= rounds; round++) {
    for (const one of contenders) {
      const count = wanted.get(one) ?? events / 4;
      const measured = await one.measure(count, keysOf(count));
      say(`${keysOf(count)} keys, round ${round}: ${one.name} ${Math.round(measured.perSecond)}/s`);
      if (round > 0) found.get(one)?.push(measured);
      else wanted.set(one, possible(events, measured.perSecond));
    }
  }
  const [relay] = contenders;
  const rates = (one: Contender) => (found.get(one) ?? []).map(({ perSecond }) => perSecond);
  const relayRates = relay ? rates(relay) : [];
  return contenders.map((one) => ({
    name: one.name,
    isOrdered: one.isOrdered,
    keys: keysOf(wanted.get(one) ?? events),
    events: wanted.get(one) ?? events,
    late: Math.max(...(found.get(one) ?? []).map(({ late }) => late)),
    perSecond: spread(rates(one)),
    relayTimes: spread(rates(one).map((rate, i) => (relayRates[i] ?? NaN) / rate)),
  }));
}

function possible(events: number, perSecond: number): number {
  const inTime = Math.floor(perSecond * atMostSeconds / 1_000) * 1_000;
  return Math.min(events, Math.max(1_000, inTime));
}

function tableOf(lines: Line[]): string {
  const rows = lines.map(({ name, isOrdered, keys, events, late, perSecond, relayTimes }) => [
    name,
    !isOrdered ? "none" : late === 0 ? "kept" : `BROKEN by ${late}`,
    rate(keys),
    rate(events),
    rate(perSecond.median),
    range(perSecond, rate),
    `${fine(relayTimes.median)} × (${range(relayTimes, fine)})`,
  ]);
  const titles = ["order per key", "keys", "events", "events/s", "spread", "our relay ÷ it"];
  return aligned([["", ...titles], ...rows]);
}

const { quick, json } = readOptions(Deno.args);
const say = (line: string) => json || console.error(line);
const events = quick ? 4_000 : 20_000;
await using servers = await startServers({
  postgresSettings: {
    min_wal_size: "1GB", // the files that were made are kept
    wal_level: "logical", // pg-transactional-outbox reads the write-ahead log
  },
});
const machine = await machineFacts(servers); // without load
await makeWalFiles(servers.postgres);
await using filler = startLibraryProcess();
const connection = await connectTo(servers.nats.url);
const source = await makeDatabase(servers.postgres, "entitlement", "peers_source");
const place: Place = { bench: { servers, quick }, connection, sourceUrl: source.ownerUrl, filler };
const contenders = await startAll(place, events);
const lines: Line[] = [];
try {
  lines.push(...await measure(contenders, events, events / 2, say));
  const ordered = contenders.filter(({ isOrdered }) => isOrdered);
  lines.push(...await measure(ordered, events, fewKeys, say));
} finally {
  for (const one of contenders) await one[Symbol.asyncDispose]();
  await connection.close();
}
const folder = `${root}dist/bench`;
await Deno.mkdir(folder, { recursive: true });
const report = JSON.stringify({ quick, machine, lines }, null, 2);
await Deno.writeTextFile(`${folder}/peers.json`, `${report}\n`);
if (json) console.log(report);
else {
  const facts = Object.entries(machine).map(([name, fact]) => `${name} ${fact}`);
  console.log(`${tableOf(lines)}\n\n${facts.join(" · ")}`);
  console.log("The results are also in dist/bench/peers.json");
}
