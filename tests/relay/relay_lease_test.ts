// Only the holder of its lease may settle a row. The lease is extended while the holder lives.
import assert from "node:assert/strict";
import { outbox } from "../../entitlement/outbox.ts";
import type { OutboxRow } from "../../shared/outbox/outbox_table.ts";
import type { Published } from "../../shared/outbox/source.ts";
import { openDatabase } from "../../shared/postgres/postgres.ts";
import type { Settlement } from "../../shared/queue/job.ts";
import { startNats } from "../../tools/servers/nats.ts";
import { ask, settingsOf } from "../support/entitlement.ts";
import {
  assertAllStored,
  assertOnceAndInOrder,
  countOf,
  insertEvents,
  manyEvents,
  outboxRows,
  publishAll,
  storedEvents,
  untilAll,
} from "../support/outbox.ts";
import { untilArrived } from "./arrived.ts";
import type { FreshPlace } from "../support/places.ts";
import { freshPlace, startRelay } from "../support/relays.ts";
import { metricOf } from "../support/metrics.ts";
import { type ServiceProcess, startService } from "../../tools/servers/service_process.ts";
import { until } from "../../tools/servers/wait.ts";

Deno.test("events that a killed relay held are taken over after their lease, which counts as an attempt", async () => {
  await using nats = await startNats();
  await using place = await freshPlace({ natsUrl: nats.url });
  const takenOver = await metricOf("kenri_worker_lease_expired_total");
  await using killed = await startProcess(place);
  await publishesAtLeast(place, 1);
  Deno.kill(nats.pid, "SIGSTOP"); // so that the relay certainly holds rows
  await insertEvents(place.ownerUrl, manyEvents({ keys: 10, versions: 2 }));
  await until("it holds all", async () => await countOf(place.ownerUrl, "IN_FLIGHT") === 20);
  await killed.kill();
  Deno.kill(nats.pid, "SIGCONT");
  await using _heir = startRelay(place);
  const rows = await untilArrived(place);
  assert.equal(rows.filter(({ attempt_count }) => attempt_count === 1).length, 20);
  assert.equal(await metricOf("kenri_worker_lease_expired_total"), takenOver + 20);
});

Deno.test("a row whose lease expired too often ends FAILED without being published", async () => {
  await using place = await freshPlace();
  const [id] = await insertEvents(place.ownerUrl, manyEvents({ keys: 3, versions: 1 }));
  await ask(
    place.ownerUrl,
    `update outbox_events set status = 'IN_FLIGHT', attempt_count = 2,
       lease_until = now() - interval '1 second', claim_token = gen_random_uuid()
     where event_id = $1`,
    [id],
  );
  await using _relay = startRelay(place, { maxAttempts: 3 });
  const [failed, ...published] = await untilAll(place.ownerUrl, "PUBLISHED", "FAILED");
  assert.equal(failed?.status, "FAILED");
  assert.equal(failed?.attempt_count, 3);
  assert.match(failed?.last_error ?? "", /Lease expired too often/);
  const stored = await storedEvents(place.natsUrl, place.stream);
  assertOnceAndInOrder(stored, published);
});

Deno.test("a relay that was suspended for longer than its lease changes nothing afterwards", async () => {
  await using nats = await startNats();
  await using place = await freshPlace({ natsUrl: nats.url });
  await using sleeper = await startProcess(place);
  await publishesAtLeast(place, 1);
  Deno.kill(nats.pid, "SIGSTOP");
  await insertEvents(place.ownerUrl, manyEvents({ keys: 5, versions: 4 }));
  await until("it holds all", async () => await countOf(place.ownerUrl, "IN_FLIGHT") === 20);
  sleeper.signal("SIGSTOP");
  Deno.kill(nats.pid, "SIGCONT");
  await using _heir = startRelay(place);
  const settled = await untilAll(place.ownerUrl, "PUBLISHED");

  sleeper.signal("SIGCONT");
  await until("it has noticed", async () => await lostLeases(sleeper) === 20);
  assert.equal(await sleeper.stop(), 0);
  assert.deepEqual(await outboxRows(place.ownerUrl), settled);
  const stored = await storedEvents(place.natsUrl, place.stream);
  assertOnceAndInOrder(stored, settled);
  assertAllStored(stored, settled);
});

Deno.test("a lease is extended while acknowledgements are slow", async () => {
  await using nats = await startNats();
  await using place = await freshPlace({ natsUrl: nats.url });
  const takenOver = await metricOf("kenri_worker_lease_expired_total");
  await using _one = startRelay(place, { leaseMs: 600 });
  await using _two = startRelay(place, { leaseMs: 600 });
  await publishesAtLeast(place, 1);
  Deno.kill(nats.pid, "SIGSTOP");
  await insertEvents(place.ownerUrl, manyEvents({ keys: 5, versions: 4 }));
  await until("one holds all", async () => await countOf(place.ownerUrl, "IN_FLIGHT") === 20);
  const tokens = await tokensOf(place);
  const from = performance.now();
  await until("several leases are over", () => performance.now() - from > 2_500);
  assert.deepEqual(await tokensOf(place), tokens);
  Deno.kill(nats.pid, "SIGCONT");
  const rows = await untilArrived(place);
  assert.ok(rows.every(({ attempt_count }) => attempt_count === 0));
  assert.equal(await metricOf("kenri_worker_lease_expired_total"), takenOver);
});

Deno.test("of two processes on one host, neither can settle the rows of the other", async () => {
  await using place = await freshPlace();
  const database = openDatabase(place.serviceUrl, "test");
  try {
    await insertEvents(place.ownerUrl, [{ key: "user:sku", version: 1 }]);
    const [before] = await outbox.claim(database, { worker: "host", leaseMs: 1 }, 1);
    await until("its lease is over", async () => {
      const [now] = await outbox.claim(database, { worker: "host", leaseMs: 60_000 }, 1);
      return now !== undefined;
    });
    assert.ok(before);
    const held = await everything(place);
    for (const settlement of everySettlement(before)) {
      assert.deepEqual(await outbox.settle(database, [settlement]), new Set());
    }
    assert.deepEqual(await outbox.extend(database, [before], 90_000), new Set());
    assert.deepEqual(await everything(place), held);
  } finally {
    await database.end();
  }
});

Deno.test("a heartbeat and a settle of the same rows do not deadlock", async () => {
  await using place = await freshPlace();
  const database = openDatabase(place.serviceUrl, "test");
  try {
    for (let round = 0; round < 10; round++) {
      await insertEvents(place.ownerUrl, manyEvents({ keys: 400, versions: 1 }));
      const rows = await outbox.claim(database, { worker: "host", leaseMs: 60_000 }, 400);
      // One heartbeat after another, as in a worker. If two ran at once, PostgreSQL might wait in
      // spite of `skip locked`, for the newer version of a row that one of them has just written.
      const heartbeats = async () => {
        for (const order of [rows, rows.toReversed(), rows, rows.toReversed()]) {
          await outbox.extend(database, order, 60_000);
        }
      };
      await Promise.all([heartbeats(), publishAll(database, rows)]);
    }
    assert.equal(await countOf(place.ownerUrl, "PUBLISHED"), 4_000);
  } finally {
    await database.end();
  }
});

function startProcess(place: FreshPlace): Promise<ServiceProcess> {
  return startService("entitlement", {
    ...settingsOf(place.serviceUrl, place),
    NATS_URL: place.natsUrl,
    ENTITLEMENT_OUTBOX_LEASE: "1s",
    ENTITLEMENT_OUTBOX_POLL_INTERVAL: "50ms",
    HOSTNAME: "test",
  });
}

async function publishesAtLeast({ ownerUrl }: FreshPlace, count: number): Promise<void> {
  await insertEvents(
    ownerUrl,
    Array.from({ length: count }, (_, i) => ({ key: `first-${i}:sku`, version: 1 })),
  );
  await untilAll(ownerUrl, "PUBLISHED");
}

async function lostLeases({ url }: ServiceProcess): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  return Number(/^kenri_worker_lease_lost_total\{worker="relay"\} (\d+)$/m.exec(text)?.[1] ?? 0);
}

function everything({ ownerUrl }: FreshPlace): Promise<unknown[]> {
  return ask(ownerUrl, "select * from outbox_events order by created_at");
}

function tokensOf({ ownerUrl }: FreshPlace): Promise<unknown[]> {
  return ask(
    ownerUrl,
    "select event_id, claim_token from outbox_events where unfinished order by created_at",
  );
}

const result: Published = { generation: 1, sequence: 1, ackedAt: performance.now() };

function everySettlement(row: OutboxRow): Settlement<OutboxRow, Published>[] {
  return [
    { row, kind: "done", result },
    { row, kind: "retry", error: "x", delayMs: 1 },
    { row, kind: "failed", error: "x", attempted: true },
    { row, kind: "released" },
  ];
}
