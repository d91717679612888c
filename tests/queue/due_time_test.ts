// Rows that are due at a time: worked on then, in the order of their keys, and not read before.
import assert from "node:assert/strict";
import { openDatabase } from "../../shared/postgres/postgres.ts";
import { ask } from "../../tools/servers/asking.ts";
import { until } from "../../tools/servers/wait.ts";
import { type ErrandRow, errands, freshErrands, startWorker, statesOf } from "./errands.ts";

const done = ({ content: { nr } }: ErrandRow) =>
  Promise.resolve({ kind: "done" as const, result: `${nr}` });

const options = { worker: "test", leaseMs: 60_000, batchSize: 100, pollIntervalMs: 1_000 };

Deno.test("a row is worked on when it is due, long before the next poll", async () => {
  await using place = await freshErrands();
  await ask(
    place.ownerUrl,
    "insert into errands (execute_at) select now() + n * interval '300 ms' from generate_series(0, 3) n",
  );
  const from = performance.now();
  await using _worker = startWorker(place, done);
  await until("all are done", async () => (await statesOf(place)).every(isDone));
  const [late] = await ask<{ early: number }>(
    place.ownerUrl,
    "select count(*)::int as early from errands where locked_at is not null",
  );
  assert.equal(late?.early, 0);
  assert.ok(performance.now() - from > 800, "none is worked on before it is due");
});

Deno.test("a claim does not take a row before it is due, by the clock of the database", async () => {
  await using place = await freshErrands();
  await ask(place.ownerUrl, "insert into errands (execute_at) values (now() + interval '1 hour')");
  const database = openDatabase(place.serviceUrl, "test");
  const claim = errands.claimRepeatedly(database, options);
  const { rows, nextDueMs } = await claim(10);
  const ms = nextDueMs ?? 0;
  await database.end();
  assert.deepEqual(rows, []);
  assert.ok(ms > 3_500_000 && ms <= 3_600_000, `${ms}`);
});

Deno.test("a row that is earlier than all others is found when the worker is woken", async () => {
  await using place = await freshErrands();
  await ask(place.ownerUrl, "insert into errands (execute_at) values (now() + interval '1 day')");
  await using worker = startWorker(place, done);
  await until("the worker sleeps", () => true);
  await ask(
    place.ownerUrl,
    "insert into errands (execute_at) values (now() + interval '200 ms')",
  );
  worker.wake();
  await until("it is done", async () => (await statesOf(place)).some(isDone));
  assert.deepEqual((await statesOf(place)).map(({ status }) => status), ["PENDING", "DONE"]);
});

Deno.test("a row that is retried or put off is due again by itself, and its key waits for it", async () => {
  await using place = await freshErrands();
  await ask(
    place.ownerUrl,
    "insert into errands (aggregate_key) values ('a'), ('a'), ('b'), ('a'), ('c')",
  );
  const begun: number[] = [];
  let tries = 0;
  await using _worker = startWorker(place, (row) => {
    begun.push(row.content.nr);
    if (row.content.nr === 1 && ++tries <= 2) {
      return Promise.resolve(
        tries === 1
          ? { kind: "retry", error: "not yet", delayMs: 150 }
          : { kind: "later", delayMs: 150 },
      );
    }
    return done(row);
  });
  await until("all are done", async () => (await statesOf(place)).every(isDone));
  assert.deepEqual(begun.filter((nr) => [1, 2, 4].includes(nr)), [1, 1, 1, 2, 4]);
  assert.deepEqual((await statesOf(place)).map(({ attempt_count }) => attempt_count), [
    1, // only the retry counts
    0,
    0,
    0,
    0,
  ]);
});

Deno.test("a claim reads no rows of the future, nor rows that wait for a retry", async () => {
  await using place = await freshErrands();
  const readWith = async (future: number) => {
    await ask(
      place.ownerUrl,
      `insert into errands (execute_at, next_retry_at)
       select now() + interval '1 year', case when n % 2 = 0 then now() + interval '1 year' end
       from generate_series(1, $1::int) n`,
      [future],
    );
    await ask(place.ownerUrl, "insert into errands (shop) select n from generate_series(1, 50) n");
    await ask(place.ownerUrl, "analyze errands");
    await ask(place.ownerUrl, "select pg_stat_reset()");
    const database = openDatabase(place.serviceUrl, "test");
    const { rows } = await errands.claimRepeatedly(database, options)(100);
    await database.end(); // the counters are complete once the sessions have ended
    assert.equal(rows.length, 50);
    const [read] = await ask<{ entries: number }>(
      place.ownerUrl,
      `select (
           select sum(idx_tup_read)::int from pg_stat_user_indexes where relname = 'errands')
         + (select seq_tup_read::int from pg_stat_user_tables where relname = 'errands')
         as entries`,
    );
    await ask(place.ownerUrl, "delete from errands where unfinished and execute_at <= now()");
    await ask(place.ownerUrl, "vacuum errands");
    return read?.entries ?? Infinity;
  };
  const [without, withMany] = [await readWith(1), await readWith(100_000)];
  assert.ok(withMany <= without + 20, `${withMany} entries were read, ${without} without`);
});

function isDone({ status }: { status: string }): boolean {
  return status === "DONE";
}
