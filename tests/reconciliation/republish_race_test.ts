// An event that somebody else changes between its search and its lock is left alone, and does not
// end the search for more.
import assert from "node:assert/strict";
import { Hono } from "hono";
import { outbox } from "../../entitlement/outbox.ts";
import { republishLost } from "../../shared/outbox/republish_lost.ts";
import { replay } from "../../entitlement/operators/replay.ts";
import { Wakeup } from "../../shared/process/signals.ts";
import { openFresh, withClient } from "../support/databases.ts";
import { ask } from "../support/entitlement.ts";
import { waitingForLocks } from "../support/locks.ts";
import { countOf, insertEvents, manyEvents } from "../support/outbox.ts";
import { collectingLog } from "../support/relays.ts";
import { until } from "../../tools/servers/wait.ts";

Deno.test("a relay that finds a whole batch republished by another one continues with the next", async () => {
  await using place = await openFresh("entitlement");
  const { ownerUrl, database } = place;
  await published(ownerUrl, 1_005);
  await lose(ownerUrl);
  const { log, lines } = collectingLog();
  await whileAnother(ownerUrl, republished, 1_000, () => republishLost(database, outbox, log));
  assert.equal(await countOf(ownerUrl, "PENDING"), 1_005);
  assert.deepEqual(lines, ["warn 5 events that the stream has lost are published again"]);
});

Deno.test("an event that is in the stream again by then is not republished", async () => {
  await using place = await openFresh("entitlement");
  const { ownerUrl, database } = place;
  await published(ownerUrl, 1);
  await lose(ownerUrl);
  const { log, lines } = collectingLog();
  const publish = "stream_generation = 2, stream_seq = 2, published_at = now()";
  await whileAnother(ownerUrl, publish, 1, () => republishLost(database, outbox, log));
  assert.equal(await countOf(ownerUrl, "PUBLISHED"), 1);
  assert.deepEqual(lines, []);
});

const replays: [string, number, { replayed: number; complete: boolean }][] = [
  ["a whole batch republished by another one continues with the next", 2, {
    replayed: 1,
    complete: true,
  }],
  ["a part republished by another one is not complete", 1, { replayed: 1, complete: false }],
];
for (const [what, byAnother, expected] of replays) {
  Deno.test(`a replay that finds ${what}`, async () => {
    await using place = await openFresh("entitlement");
    const { ownerUrl, database } = place;
    await published(ownerUrl, 3);
    const app = new Hono().post("/", replay(database, new Wakeup()));
    const range = { from: "2020-01-01T00:00:00Z", to: "2025-01-01T00:00:00Z", limit: 2 };
    const answer = await whileAnother(ownerUrl, republished, byAnother, async () => {
      const response = await app.request("/", {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ ...range, who: "kim", reason: "r" }),
      });
      return await response.json();
    });
    assert.deepEqual({ replayed: answer.replayed, complete: answer.complete }, expected);
  });
}

/** Their order by sequence and by time is the same. */
async function published(ownerUrl: string, count: number): Promise<void> {
  await insertEvents(ownerUrl, manyEvents({ keys: count, versions: 1 }));
  await ask(
    ownerUrl,
    `update outbox_events row
     set status = 'PUBLISHED', stream_generation = 1, stream_seq = n,
       published_at = '2024-01-01T00:00:00Z'::timestamptz + n * interval '1 second'
     from (
       select event_id, row_number() over (order by created_at) as n from outbox_events
     ) as numbered
     where row.event_id = numbered.event_id`,
  );
}

/** Makes it look as if the stream had been created anew and were empty. */
async function lose(ownerUrl: string): Promise<void> {
  await ask(
    ownerUrl,
    `insert into stream_generations (generation, stream, stream_created_at, server_id, kept_up_to)
     values (1, 's', 'a', 'a', 0), (2, 's', 'b', 'b', 0)`,
  );
}

const republished =
  "status = 'PENDING', published_at = null, stream_generation = null, stream_seq = null";

/** Changes the first `count` events after `work` has found them and before it locks them. */
function whileAnother<Result>(
  ownerUrl: string,
  change: string,
  count: number,
  work: () => Promise<Result>,
): Promise<Result> {
  return withClient(ownerUrl, async (other) => {
    await other.query("begin");
    await other.query(`update outbox_events set ${change} where stream_seq <= $1`, [count]);
    const working = work();
    await until("it waits", async () => await waitingForLocks(ownerUrl) === 1);
    await other.query("commit");
    return await working;
  });
}
