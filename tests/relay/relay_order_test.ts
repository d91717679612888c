// However many relays run, each event is published once, and the events of one key in their order.
import assert from "node:assert/strict";
import { ask, settingsOf } from "../support/entitlement.ts";
import {
  assertOnceAndInOrder,
  countOf,
  insertEvents,
  manyEvents,
  outboxRows,
  storedEvents,
  untilAll,
} from "../support/outbox.ts";
import { untilArrived } from "./arrived.ts";
import { freshPlace, startRelay } from "../support/relays.ts";
import { metricOf } from "../support/metrics.ts";
import { startService } from "../../tools/servers/service_process.ts";
import { until } from "../../tools/servers/wait.ts";

Deno.test("four relays publish each event of hot and cold keys once and in order", async () => {
  await using place = await freshPlace();
  const before = await metricOf("kenri_worker_lease_lost_total");
  await insertEvents(place.ownerUrl, manyEvents({ keys: 3, versions: 300 }));
  await using one = startRelay(place, { batchSize: 7 });
  await using two = startRelay(place, { batchSize: 20 });
  await using three = startRelay(place, { batchSize: 50 });
  await using four = startRelay(place, { batchSize: 200 });
  // More events while the relays work, with and without waking them.
  for (let part = 0; part < 10; part++) {
    await insertEvents(place.ownerUrl, manyEvents({ keys: 60, versions: 3 }));
    if (part % 2) one.toRelay.wake.trigger();
    if (part % 3) two.toRelay.wake.trigger();
  }
  const rows = await untilArrived(place);
  assert.ok(rows.every(({ attempt_count }) => attempt_count === 0));
  assert.equal(await metricOf("kenri_worker_lease_lost_total"), before);
  for (const relay of [one, two, three, four]) {
    assert.deepEqual(relay.log.filter((line) => /^error/.test(line)), []);
  }
});

Deno.test("so do three processes, one of which is killed and one of which is stopped", async () => {
  await using place = await freshPlace();
  const settings = {
    ...settingsOf(place.serviceUrl, place),
    ENTITLEMENT_OUTBOX_LEASE: "1s",
    ENTITLEMENT_OUTBOX_POLL_INTERVAL: "50ms",
    ENTITLEMENT_OUTBOX_BATCH_SIZE: "20",
  };
  await using killed = await startService("entitlement", settings);
  await using stopped = await startService("entitlement", settings);
  await using _third = await startService("entitlement", settings);
  await insertEvents(place.ownerUrl, manyEvents({ keys: 40, versions: 100 }));
  await until("they publish", async () => await countOf(place.ownerUrl, "PUBLISHED") > 200);
  await killed.kill();
  assert.equal(await stopped.stop(), 0);
  await untilArrived(place);
});

Deno.test("a row in backoff holds back its successors, and no other key", async () => {
  await using place = await freshPlace();
  const [first] = await insertEvents(place.ownerUrl, manyEvents({ keys: 2, versions: 5 }));
  await inBackoff(place.ownerUrl, first);
  await using _relay = startRelay(place);
  await until(
    "the other key is published",
    async () => await countOf(place.ownerUrl, "PUBLISHED") === 5,
  );
  const held = (await outboxRows(place.ownerUrl)).filter(({ status }) => status === "PENDING");
  assert.deepEqual([...new Set(held.map(({ aggregate_key }) => aggregate_key))], ["user-0:sku"]);

  await inBackoff(place.ownerUrl, first, 0);
  await untilArrived(place);
});

Deno.test("a FAILED row does not hold back its successors", async () => {
  await using place = await freshPlace();
  const key = "user:sku";
  await insertEvents(place.ownerUrl, [
    { key, version: 1 },
    { key, version: 2, payload: { event_type: "Nonsense" } },
    { key, version: 3 },
  ]);
  await using _relay = startRelay(place);
  const rows = await untilAll(place.ownerUrl, "PUBLISHED", "FAILED");
  assert.deepEqual(rows.map(({ status }) => status), ["PUBLISHED", "FAILED", "PUBLISHED"]);
  const published = rows.filter(({ status }) => status === "PUBLISHED");
  assertOnceAndInOrder(await storedEvents(place.natsUrl, place.stream), published);
});

Deno.test("twenty thousand blocked rows of a hot key do not starve the others", async () => {
  await using place = await freshPlace();
  const [first] = await insertEvents(place.ownerUrl, manyEvents({ keys: 1, versions: 20_000 }));
  await inBackoff(place.ownerUrl, first);
  await insertEvents(place.ownerUrl, [{ key: "late:sku", version: 1 }]);
  await using _relay = startRelay(place);
  await until(
    "the late one is published",
    async () => await countOf(place.ownerUrl, "PUBLISHED") === 1,
    5_000,
  );
  assert.equal(await countOf(place.ownerUrl, "PENDING"), 20_000);
});

Deno.test("a change right after another of its key does not wait for the next poll", async () => {
  await using place = await freshPlace();
  await insertEvents(place.ownerUrl, manyEvents({ keys: 1, versions: 200 }));
  await using _relay = startRelay(place, { pollIntervalMs: 60_000, batchSize: 10 });
  await untilArrived(place);
});

async function inBackoff(ownerUrl: string, id: string | undefined, minutes = 60): Promise<void> {
  await ask(
    ownerUrl,
    `update outbox_events set next_retry_at = now() + make_interval(mins => $2)
     where event_id = $1`,
    [id, minutes],
  );
}
