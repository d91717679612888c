// Many rows of few keys: their rows are worked on in order, however many workers there are and
// whatever happens in the middle of a line.
import assert from "node:assert/strict";
import type { Outcome } from "../../shared/queue/job.ts";
import { ask } from "../../tools/servers/asking.ts";
import { until } from "../../tools/servers/wait.ts";
import { type ErrandRow, freshErrands, startWorker, statesOf } from "./errands.ts";

const keys = 4;
const rowsOfKey = 60;

Deno.test("workers that share few keys keep their order through retries, failures and lost leases", async () => {
  await using place = await freshErrands();
  await ask(
    place.ownerUrl,
    `insert into errands (aggregate_key, shop)
     select 'key ' || n % $1::int, 'shop ' || n % $1::int from generate_series(1, $2::int) n`,
    [keys, keys * rowsOfKey],
  );
  const ended = new Set<number>(); // done or failed for good
  const problems: string[] = [];
  const work = async ({ key, content: { nr } }: ErrandRow): Promise<Outcome<string>> => {
    for (let earlier = nr - keys; earlier > 0; earlier -= keys) {
      if (!ended.has(earlier)) problems.push(`${nr} of ${key} began before ${earlier} had ended`);
    }
    await new Promise((over) => setTimeout(over, Math.random() * 5));
    const chance = Math.random();
    if (chance < 0.06) return { kind: "retry", error: "not yet", delayMs: 30 * Math.random() };
    if (chance < 0.12) return { kind: "later", delayMs: 30 * Math.random() };
    if (chance < 0.14) return { kind: "unavailable", error: "away" };
    ended.add(nr);
    if (chance < 0.17) return { kind: "failed", error: "never" };
    return { kind: "done", result: "ok" };
  };
  const more = { leaseMs: 1_000, pollIntervalMs: 50 };
  await using _one = startWorker(place, work, more);
  await using _two = startWorker(place, work, more);
  await using _three = startWorker(place, work, more);
  await until("all have ended", async () => {
    // Whoever holds these rows loses them.
    await ask(
      place.ownerUrl,
      `update errands set lease_until = now() - interval '1 ms'
       where status = 'RUNNING' and random() < 0.02`,
    );
    return (await statesOf(place)).every(({ status }) => status === "DONE" || status === "FAILED");
  }, 60_000);
  assert.deepEqual(problems, []);
  assert.equal(ended.size, keys * rowsOfKey);
});
