// Measures what happens to changes that arrive at 1, 2, 4 and 8 times the rate that the service can do:
// deno run --allow-all tools/bench/overload.ts
// It prints the table of docs/reliability/overload.md. Arguments: other multiples.
import { memoryOf } from "../servers/memory.ts";
import { runLoad, runOpenLoop, timesOf, turnedAway } from "../load/sockets.ts";
import { startServers } from "../servers/servers.ts";
import { startBoth } from "./both.ts";
import { countRows } from "../servers/asking.ts";

const warmUp = 20_000;
const seconds = 10;

await using servers = await startServers();
await using both = await startBoth(servers, "overload");
const { url, pid } = both.one("entitlement");
let made = warmUp;
let acknowledged = warmUp;

/** One open loop, whose changes are counted. */
async function measure(perSecond: number, forSeconds: number) {
  const arrivals = await runOpenLoop(url, { perSecond, seconds: forSeconds, first: made });
  made += arrivals.changes.length;
  const taken = timesOf(arrivals, 200);
  acknowledged += taken.count;
  return { arrivals, taken, refused: timesOf(arrivals, 503) };
}

const { seconds: needed } = await runLoad(url, "change", { first: 0, count: warmUp });
const capacity = Math.round(warmUp / needed);
console.log(`${capacity} changes/s by 64 clients that wait for their answers\n`);
console.log(
  "| load | arrive/s | accepted/s | p50, p99 ms | refused/s | p50, p99 ms | no connection/s | MiB | then p50, p99 ms |",
);
console.log("| --- | --- | --- | --- | --- | --- | --- | --- | --- |");
const multiples = Deno.args.length > 0 ? Deno.args.map(Number) : [0.5, 1, 2, 4, 8];
for (const times of multiples) {
  const { arrivals, taken, refused } = await measure(capacity * times, seconds);
  const { taken: after } = await measure(100, 2);
  const perSecond = (count: number) => Math.round(count / arrivals.seconds).toLocaleString("en");
  const cells = [
    `${times} ×`,
    perSecond(arrivals.changes.length),
    perSecond(taken.count),
    `${taken.p50}, ${taken.p99}`,
    perSecond(refused.count),
    `${refused.p50}, ${refused.p99}`,
    perSecond(timesOf(arrivals, turnedAway).count),
    memoryOf(pid).mebibytes.toFixed(0),
    `${after.p50}, ${after.p99}`,
  ];
  console.log(`| ${cells.join(" | ")} |`);
}

const events = await countRows(both.owners.entitlement, "outbox_events");
console.log(`\n${acknowledged} were acknowledged, ${events} are in the outbox`);
const sent = "notifications where status = 'SENT'";
const from = performance.now();
while (await countRows(both.owners.notification, sent) < events) {
  await new Promise((again) => setTimeout(again, 50));
}
console.log(`All were sent ${Math.round(performance.now() - from)} ms later`);
