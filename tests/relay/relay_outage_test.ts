// While the broker is down, frozen, full or without its stream, no event fails and no attempt is
// counted. maxAttempts is 2 and the backoff 50 ms, so a counted attempt would soon show.
import assert from "node:assert/strict";
import { startNats } from "../../tools/servers/nats.ts";
import {
  assertAllStored,
  countOf,
  insertEvents,
  manyEvents,
  outboxRows,
  type OutboxState,
  storedEvents,
  untilAll,
} from "../support/outbox.ts";
import { untilArrived } from "./arrived.ts";
import type { FreshPlace } from "../support/places.ts";
import { freshPlace, type RunningRelay, startRelay } from "../support/relays.ts";
import { deleteStream, withNats } from "../support/streams.ts";
import { until } from "../../tools/servers/wait.ts";

Deno.test("a long outage of the broker counts no attempt", async () => {
  await using nats = await startNats();
  await using place = await freshPlace({ natsUrl: nats.url });
  await using relay = startRelay(place, { batchSize: 1_500 }); // more than may be in flight
  await insertEvents(place.ownerUrl, manyEvents({ keys: 12_000, versions: 1 }));
  await until("it publishes", async () => await countOf(place.ownerUrl, "PUBLISHED") > 100);
  await nats.kill();
  await insertEvents(place.ownerUrl, manyEvents({ keys: 20, versions: 10 }));
  await untilReleased(place);
  await pauseWithoutClaims(place, 2_000);
  await nats.start();
  await assertAllArrived(place, relay);
});

Deno.test("a broker that is down when the relay starts counts no attempt", async () => {
  await using nats = await startNats();
  await using place = await freshPlace({ natsUrl: nats.url });
  await nats.stop();
  await insertEvents(place.ownerUrl, manyEvents({ keys: 5, versions: 2 }));
  await using relay = startRelay(place);
  await until("it is logged", () => relay.log.some((line) => line.includes("can't be reached")));
  await pauseWithoutClaims(place, 1_500);
  await nats.start();
  await assertAllArrived(place, relay);
  assert.equal(relay.log.filter((line) => line.includes("can't be reached")).length, 1);
});

Deno.test("a deleted stream counts no attempt: it is created again with all its events", async () => {
  await using place = await freshPlace();
  await using relay = startRelay(place);
  await insertEvents(place.ownerUrl, manyEvents({ keys: 20, versions: 10 }));
  await untilAll(place.ownerUrl, "PUBLISHED");
  await deleteStream(place.natsUrl, place.stream);
  await insertEvents(place.ownerUrl, manyEvents({ keys: 20, versions: 5 }));
  relay.toRelay.wake.trigger();
  await assertAllArrived(place, relay);
  assert.ok(relay.log.some((line) => line.includes("paused, destination unavailable")));
});

Deno.test("a frozen broker counts no attempt, even in the middle of a batch", async () => {
  await using nats = await startNats();
  await using place = await freshPlace({ natsUrl: nats.url });
  await using relay = startRelay(place, { batchSize: 500 });
  await insertEvents(place.ownerUrl, manyEvents({ keys: 4_000, versions: 2 }));
  await until("it publishes", async () => await countOf(place.ownerUrl, "PUBLISHED") > 500);
  Deno.kill(nats.pid, "SIGSTOP");
  try {
    await until(
      "the acknowledgements have timed out",
      async () =>
        await countOf(place.ownerUrl, "IN_FLIGHT") <= 2 &&
        relay.log.some((line) =>
          line.includes("The stream did not acknowledge the message in time")
        ),
    );
  } finally {
    Deno.kill(nats.pid, "SIGCONT");
  }
  await assertAllArrived(place, relay);
});

Deno.test("a full stream counts no attempt", async () => {
  await using place = await freshPlace();
  await using relay = startRelay(place);
  await insertEvents(place.ownerUrl, manyEvents({ keys: 20, versions: 2 }));
  await untilAll(place.ownerUrl, "PUBLISHED");
  await changeStream(place, { max_msgs: 40, discard: "new" });
  await insertEvents(place.ownerUrl, manyEvents({ keys: 20, versions: 2 }));
  await until("it is logged", () => relay.log.some((line) => line.includes("maximum messages")));
  await changeStream(place, { max_msgs: -1 });
  await assertAllArrived(place, relay);
});

Deno.test("a message that the server finds too large fails alone, after its attempts", async () => {
  await using nats = await startNats({ settings: "max_payload: 2048" });
  await using place = await freshPlace({ natsUrl: nats.url });
  await using relay = startRelay(place, { maxAttempts: 3 });
  // Sizes around the limit, which is for body and headers together, and far beyond it.
  const sizes = [...Array.from({ length: 40 }, (_, i) => 1_600 + 10 * i), 100_000];
  const ids = await insertEvents(
    place.ownerUrl,
    sizes.flatMap((size, i) => [
      { key: `large-${i}:${"x".repeat(size)}`, version: 1 },
      { key: `small-${i}:sku`, version: 1 },
    ]),
  );
  const rows = await untilAll(place.ownerUrl, "PUBLISHED", "FAILED");
  const failed = rows.filter(({ status }) => status === "FAILED");
  assert.ok(
    failed.length > 10 && failed.every(({ aggregate_key }) => /^large/.test(aggregate_key)),
  );
  for (const { attempt_count, last_error } of failed) {
    assert.equal(attempt_count, 3);
    assert.match(last_error ?? "", /MAX_PAYLOAD/);
  }
  const stored = await storedEvents(place.natsUrl, place.stream);
  assertAllStored(stored, rows.filter(({ status }) => status === "PUBLISHED"));
  assert.equal(stored.length, ids.length - failed.length);
  assert.equal(relay.log.filter((line) => line.includes("was lost")).length, 0);
});

async function assertAllArrived(place: FreshPlace, relay: RunningRelay): Promise<void> {
  const rows = await untilArrived(place);
  assertNoAttempts(rows);
  assert.deepEqual(relay.log.filter((line) => line.includes("gave up")), []);
}

function assertNoAttempts(rows: OutboxState[]): void {
  assert.deepEqual(rows.filter(({ attempt_count }) => attempt_count > 0), []);
}

// Nothing may be IN_FLIGHT for a second, because a claim may have been running when the broker
// died.
function untilReleased({ ownerUrl }: FreshPlace): Promise<void> {
  let quietSince = performance.now();
  return until("all rows are released", async () => {
    if (await countOf(ownerUrl, "IN_FLIGHT") > 0) quietSince = performance.now();
    return performance.now() - quietSince > 1_000;
  });
}

// The time must be longer than all attempts and backoffs together.
async function pauseWithoutClaims({ ownerUrl }: FreshPlace, ms: number): Promise<void> {
  const from = performance.now();
  await until("the pause is over", async () => {
    assert.equal(await countOf(ownerUrl, "IN_FLIGHT"), 0);
    return performance.now() - from > ms;
  });
  assertNoAttempts(await outboxRows(ownerUrl));
}

function changeStream({ natsUrl, stream }: FreshPlace, change: object): Promise<void> {
  return withNats(natsUrl, async (connection) => {
    const manager = await connection.jetstreamManager();
    const { config } = await manager.streams.info(stream);
    await manager.streams.update(stream, { ...config, ...change });
  });
}
