// What PostgreSQL does for a change stays the same however large the tables have grown, also by plans
// that were made while they were empty.
import assert from "node:assert/strict";
import { grant, sendChange, startReplicas } from "./changes.ts";
import { freshDatabase, withClient } from "./databases.ts";
import { ask, settingsOf } from "./entitlement.ts";
import { startService } from "./services.ts";
import { until } from "./wait.ts";

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
  await service.stop(); // with its sessions their counters are complete
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
