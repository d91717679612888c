// PostgreSQL does the same work for a change however large the tables are, even with plans that
// were made while they were empty.
import assert from "node:assert/strict";
import { outbox } from "../../entitlement/outbox.ts";
import type { OutboxRow } from "../../shared/outbox/outbox_table.ts";
import { type Database, openDatabase } from "../../shared/postgres/postgres.ts";
import { grant } from "../../tools/load/change_request.ts";
import { sendChange, startReplicas } from "../support/changes.ts";
import { freshDatabase, ownDatabase, withClient } from "../support/databases.ts";
import { ask, settingsOf } from "../support/entitlement.ts";
import { countOf, insertEvents, manyEvents, publishAll } from "../support/outbox.ts";
import { startService } from "../../tools/servers/service_process.ts";
import type { DatabaseUrls } from "../../tools/load/stage.ts";
import { until } from "../../tools/servers/wait.ts";

Deno.test("a change reads a few rows by index, by a plan from when the tables were empty", async () => {
  await using database = await freshDatabase("entitlement");
  await using service = await startReplicas(1, database.serviceUrl);
  const send = async (from: number, to: number) => {
    for (let i = from; i < to; i++) {
      const change = grant({ key: `key-${i}`, user: `user-${i}` });
      const { answer } = await sendChange(service.urls[0] as string, change);
      assert.equal(answer?.status, 200);
    }
  };
  await send(0, 20); // by now PostgreSQL keeps the plans
  await withClient(database.ownerUrl, async (owner) => {
    await owner.query(
      `insert into entitlements
         (user_id, stock_keeping_unit, status, granted_at, source, source_id, version, updated_at)
       select 'other-' || n, 'sku', 'ACTIVE', now(), 'r', 'p', 1, now()
       from generate_series(1, 20000) as n`,
    );
    await owner.query(
      `insert into idempotency_keys
         (idem_key, request_hash, response_code, response_body, created_at, expires_at)
       select 'other-' || n, '', 200, '', now(), now() + interval '1 day'
       from generate_series(1, 20000) as n`,
    );
  });
  await send(20, 40);
  await service.stop(); // the counters are complete once the sessions have ended
  const [read] = await ask<{ rows: number }>(
    database.ownerUrl,
    `select sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::int as rows
     from pg_stat_user_tables
     where relname in ('entitlements', 'idempotency_keys')`,
  );
  assert.ok(read && read.rows < 1_000, `${read?.rows} rows were read for 40 changes`);
});

Deno.test("claiming an event touches no index", async () => {
  await using database = await freshDatabase("entitlement");
  const changes = 300;
  await using writer = await startReplicas(1, database.serviceUrl);
  const sent = await Promise.all(Array.from(
    { length: changes },
    (_, i) => sendChange(writer.urls[0] as string, grant({ key: `key-${i}`, user: `user-${i}` })),
  ));
  assert.ok(sent.every(({ answer }) => answer?.status === 200));
  await writer.stop();

  await using relay = await startService("entitlement", settingsOf(database.serviceUrl));
  await until("all are published", async () => {
    const left = await ask(database.ownerUrl, "select from outbox_events where unfinished");
    return left.length === 0;
  });
  await relay.stop();
  const [updates] = await ask<{ hot: number }>(
    database.ownerUrl,
    `select n_tup_hot_upd::int as hot from pg_stat_user_tables where relname = 'outbox_events'`,
  );
  assert.ok(updates && updates.hot > changes * 0.9, `only ${updates?.hot} claims were HOT updates`);
});

// This test has a server of its own, because any open transaction keeps index entries of finished
// rows.
Deno.test("a claim does not read index entries of rows that were finished before it", async () => {
  await using place = await ownDatabase();
  const read = await readByClaims(place, async (database, claim) => {
    for (let i = 0; i < 300; i++) {
      await insertEvents(place.ownerUrl, [{ key: `user-${i}:sku`, version: 1 }]);
      await publishAll(database, await claim(10));
    }
  });
  assert.ok(read < 3_000, `${read} index entries were read for 300 events`);
});

Deno.test("a claim does not read waiting rows of other keys, even with a plan from when none waited", async () => {
  await using place = await freshDatabase("entitlement");
  await insertEvents(place.ownerUrl, manyEvents({ keys: 20_000, versions: 1 }));
  await ask(
    place.ownerUrl,
    "update outbox_events set status = 'PUBLISHED', published_at = now(), stream_seq = 1",
  );
  await ask(place.ownerUrl, "vacuum analyze outbox_events");
  const read = await readByClaims(place, async (database, claim) => {
    for (let i = 0; i < 10; i++) await claim(50); // by now PostgreSQL keeps the plan
    await insertEvents(place.ownerUrl, manyEvents({ keys: 3_000, versions: 1 }));
    let claimed = 0;
    await until("150 are claimed", async () => {
      const rows = await claim(50); // the first finds something with the next poll
      await publishAll(database, rows);
      return (claimed += rows.length) >= 150;
    });
  });
  assert.ok(read > 150 && read < 10_000, `${read} entries were read for 150 events`);
});

Deno.test("a claim does not read finished rows that a transaction held open keeps in the index", async () => {
  await using place = await freshDatabase("entitlement");
  await insertEvents(place.ownerUrl, manyEvents({ keys: 3_000, versions: 1 }));
  const read = await withClient(place.ownerUrl, async (holder) => {
    await holder.query("begin isolation level repeatable read");
    await holder.query("select from stream_generations");
    return await readByClaims(place, async (database, claim) => {
      for (let i = 0; i < 60; i++) await publishAll(database, await claim(50));
    });
  });
  assert.equal(await countOf(place.ownerUrl, "PUBLISHED"), 3_000);
  assert.ok(read < 20_000, `${read} index entries were read for 3,000 events`);
});

Deno.test("of claims that find nothing, only one for each poll reads finished rows", async () => {
  await using place = await freshDatabase("entitlement");
  await insertEvents(place.ownerUrl, manyEvents({ keys: 3_000, versions: 1 }));
  let polls = 0;
  const read = await withClient(place.ownerUrl, async (holder) => {
    await holder.query("begin isolation level repeatable read");
    await holder.query("select from stream_generations");
    await ask(place.ownerUrl, "update outbox_events set status = 'FAILED'");
    const from = performance.now();
    const read = await readByClaims(place, async (_, claim) => {
      for (let i = 0; i < 60; i++) assert.deepEqual(await claim(50), []);
    });
    polls = 1 + Math.floor((performance.now() - from) / 1_000);
    return read;
  });
  assert.ok(
    read <= 3_100 * polls,
    `${read} index entries were read by 60 claims in ${polls} polls`,
  );
});

Deno.test("an event that is older than those claimed before it is found by the next poll", async () => {
  await using place = await freshDatabase("entitlement");
  await insertEvents(place.ownerUrl, manyEvents({ keys: 100, versions: 1 }));
  await readByClaims(place, async (_, claim) => {
    assert.equal((await claim(50)).length, 50);
    const [late] = await insertEvents(place.ownerUrl, [{ key: "late:sku", version: 1 }]);
    await ask(
      place.ownerUrl,
      "update outbox_events set created_at = created_at - interval '1 day' where event_id = $1",
      [late],
    );
    await until("it is claimed", async () => (await claim(1)).some(({ id }) => id === late));
  });
});

type Claim = (limit: number) => Promise<OutboxRow[]>;

/** Counts what the claims of `work` read in the indexes of unfinished events, or in the table. */
async function readByClaims(
  { ownerUrl, serviceUrl }: DatabaseUrls,
  work: (database: Database, claim: Claim) => Promise<void>,
): Promise<number> {
  const database = openDatabase(serviceUrl, "test");
  const options = { worker: "test", leaseMs: 60_000, batchSize: 50, pollIntervalMs: 1_000 };
  const claim = outbox.claimRepeatedly(database, options);
  await ask(ownerUrl, "select pg_stat_reset()");
  try {
    await work(database, async (limit) => (await claim(limit)).rows);
  } finally {
    await database.end(); // the counters are complete once the sessions have ended
  }
  const [entries] = await ask<{ read: number }>(
    ownerUrl,
    `select (
         select sum(idx_tup_read)::int from pg_stat_user_indexes
         where indexrelname in ('outbox_events_oldest', 'outbox_events_line'))
       + (select seq_tup_read::int from pg_stat_user_tables where relname = 'outbox_events')
       as read`,
  );
  return entries?.read ?? Infinity;
}
