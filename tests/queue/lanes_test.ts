// Rows of many destinations in one table: a slow or paused one holds up no other.
import assert from "node:assert/strict";
import { openDatabase } from "../../shared/postgres/postgres.ts";
import { ask } from "../../tools/servers/asking.ts";
import { until } from "../../tools/servers/wait.ts";
import { type ErrandRow, errands, freshErrands, startWorker } from "./errands.ts";

const lease = { worker: "test", leaseMs: 60_000 };
const done = ({ content: { nr } }: ErrandRow) =>
  Promise.resolve({ kind: "done" as const, result: `${nr}` });

Deno.test("a claim leases few rows of one lane, and none of a lane that is left out", async () => {
  await using place = await freshErrands();
  await ask(place.ownerUrl, "insert into errands (shop) select 'slow' from generate_series(1, 30)");
  await ask(place.ownerUrl, "insert into errands (shop) select 'full' from generate_series(1, 30)");
  await ask(place.ownerUrl, "insert into errands (shop) values ('a'), ('b')");
  const database = openDatabase(place.serviceUrl, "test");
  const context = { tokens: [], lanes: ["full"], fromOldest: false };
  const rows = await errands.claim(database, lease, 50, context);
  await database.end();
  const shops = Object.groupBy(rows, ({ lane }) => lane ?? "");
  assert.deepEqual(
    Object.entries(shops).map(([shop, rows]) => [shop, rows?.length]),
    [["slow", 8], ["a", 1], ["b", 1]],
  );
});

Deno.test("a destination that never answers holds up no other, however many rows wait for it", async () => {
  await using place = await freshErrands();
  await ask(
    place.ownerUrl,
    "insert into errands (shop) select 'slow' from generate_series(1, 500)",
  );
  await ask(
    place.ownerUrl,
    "insert into errands (shop) select 'shop ' || n % 10 from generate_series(1, 200) n",
  );
  const answered = Promise.withResolvers<void>();
  let [underWay, most] = [0, 0];
  await using _worker = startWorker(place, async (row) => {
    if (row.lane === "slow") {
      most = Math.max(most, ++underWay);
      await answered.promise;
      underWay--;
    }
    return done(row);
  }, { atOnce: (lane) => lane === "slow" ? 3 : 10, pollIntervalMs: 1_000 });
  const unfinishedOf = async (condition: string) =>
    (await ask(place.ownerUrl, `select from errands where unfinished and ${condition}`)).length;
  await until("all others are done", async () => await unfinishedOf("shop <> 'slow'") === 0);
  assert.equal(most, 3, "only so many at once");
  answered.resolve();
  await until("the slow ones are done", async () => await unfinishedOf("true") === 0);
});

Deno.test("a lane that is put off pauses alone, counts nothing, and goes on by itself", async () => {
  await using place = await freshErrands();
  await ask(
    place.ownerUrl,
    "insert into errands (shop) select case when n % 2 = 0 then 'busy' else 'open' end from generate_series(1, 40) n",
  );
  let refused = 0;
  const opensAt = performance.now() + 700;
  await using _worker = startWorker(place, (row) => {
    if (row.lane === "open" || performance.now() >= opensAt) return done(row);
    refused++;
    return Promise.resolve({ kind: "later", delayMs: 250, lane: "busy" });
  }, { atOnce: () => 2 });
  await until("all are done", async () => {
    const left = await ask(place.ownerUrl, "select from errands where unfinished");
    return left.length === 0;
  });
  const [counted] = await ask<{ attempts: number }>(
    place.ownerUrl,
    "select sum(attempt_count)::int as attempts from errands",
  );
  assert.equal(counted?.attempts, 0);
  assert.ok(refused < 40, `${refused} rows were tried while their lane was paused`);
});
