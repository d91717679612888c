// When the broker has lost events that it had acknowledged, the relay republishes exactly those.
import assert from "node:assert/strict";
import { outbox } from "../../entitlement/outbox.ts";
import type { OutboxRow } from "../../shared/outbox/outbox_table.ts";
import { openDatabase } from "../../shared/postgres/postgres.ts";
import { uuidv7 } from "../../shared/process/uuid.ts";
import { type NatsServer, startNats } from "../../tools/servers/nats.ts";
import { ask } from "../support/entitlement.ts";
import {
  assertAllStored,
  countOf,
  goodPayload,
  insertEvents,
  manyEvents,
  outboxRows,
  storedEvents,
  untilAll,
} from "../support/outbox.ts";
import { untilArrived } from "./arrived.ts";
import type { FreshPlace } from "../support/places.ts";
import { freshPlace, startRelay } from "../support/relays.ts";
import { withNats } from "../support/streams.ts";
import { until } from "../../tools/servers/wait.ts";
import { countRows } from "../../tools/servers/asking.ts";

Deno.test("after the broker was wiped, the new stream gets every published event", async () => {
  await using nats = await startNats();
  await using place = await freshPlace({ natsUrl: nats.url });
  await using relay = startRelay(place);
  await insertEvents(place.ownerUrl, manyEvents({ keys: 50, versions: 10 }));
  const before = await untilAll(place.ownerUrl, "PUBLISHED");
  await nats.kill();
  await nats.wipe();
  await nats.start();
  await until("they are republished", () => relay.log.some((line) => line.includes("500 events")));
  const rows = await untilArrived(place);
  const generation = before[0]?.stream_generation ?? 0;
  assert.ok(rows.every(({ stream_generation }) => stream_generation > generation));
  assert.ok(rows.every(({ attempt_count }) => attempt_count === 0));
});

Deno.test("so it does while two relays publish, and when the broker is wiped again", async () => {
  await using nats = await startNats();
  await using place = await freshPlace({ natsUrl: nats.url });
  await using _one = startRelay(place);
  await using _two = startRelay(place);
  for (let wipes = 0; wipes < 3; wipes++) {
    await insertEvents(place.ownerUrl, manyEvents({ keys: 50, versions: 40 }));
    const published = await countOf(place.ownerUrl, "PUBLISHED");
    await until(
      "they publish",
      async () => await countOf(place.ownerUrl, "PUBLISHED") > published + 300,
    );
    await nats.kill();
    await nats.wipe();
    await nats.start();
  }
  const rows = await untilStored(place);
  assert.ok(rows.every(({ attempt_count }) => attempt_count === 0));
});

Deno.test("if a stream has lost its end, exactly the events of its end are republished", async () => {
  await using nats = await startNats();
  await using place = await freshPlace({ natsUrl: nats.url });
  await using relay = startRelay(place);
  await insertEvents(place.ownerUrl, manyEvents({ keys: 10, versions: 10 }));
  const kept = await untilAll(place.ownerUrl, "PUBLISHED");
  await using copy = await copyOf(nats);
  await insertEvents(place.ownerUrl, manyEvents({ keys: 10, versions: 7 }));
  const lost = (await untilAll(place.ownerUrl, "PUBLISHED")).slice(kept.length);
  await copy.restore();
  await until("they are republished", () => relay.log.some((line) => line.includes("70 events")));
  const rows = await untilStored(place);
  assert.deepEqual(rows.slice(0, kept.length), kept);
  const publishedAt = new Map(lost.map(({ event_id, published_at }) => [event_id, published_at]));
  for (const { event_id, published_at } of rows.slice(kept.length)) {
    assert.ok(Number(published_at) > Number(publishedAt.get(event_id)));
  }
});

Deno.test("an event that was settled after the loss, by a relay that has ended, is republished", async () => {
  await using nats = await startNats();
  await using place = await freshPlace({ natsUrl: nats.url });
  await using copy = await copyOf(nats);
  await using _busy = startRelay(place);
  await insertEvents(place.ownerUrl, manyEvents({ keys: 1, versions: 3 }));
  await untilAll(place.ownerUrl, "PUBLISHED");
  await copy.take();
  await until("it is back", async () => (await generations(place)) === 2);

  // Another relay publishes an event and is slow to settle it.
  const slow = await publishWithoutSettling(place);
  await copy.restore();
  await until("the busy one is back", async () => (await generations(place)) === 3);
  await insertEvents(place.ownerUrl, [{ key: "next:sku", version: 1 }]);
  await until(
    "the next one is published",
    async () => await countOf(place.ownerUrl, "PUBLISHED") === 4,
  );
  assert.deepEqual(await slow.settle(), new Set([slow.id]));
  const stored = await storedEvents(place.natsUrl, place.stream);
  assert.ok(!stored.some(({ id }) => id === slow.id));

  await untilStored(place); // although another event has its sequence
});

Deno.test("neither a purge nor a restart counts as a loss", async () => {
  await using nats = await startNats();
  await using place = await freshPlace({ natsUrl: nats.url });
  await using relay = startRelay(place);
  await insertEvents(place.ownerUrl, manyEvents({ keys: 10, versions: 10 }));
  const before = await untilAll(place.ownerUrl, "PUBLISHED");
  await withNats(nats.url, async (connection) => {
    const manager = await connection.jetstreamManager();
    await manager.streams.purge(place.stream, { seq: 60 });
  });
  await nats.stop();
  await nats.start();
  await until("it is back", async () => (await generations(place)) === 2);
  await insertEvents(place.ownerUrl, [{ key: "new:sku", version: 1 }]);
  const after = await untilAll(place.ownerUrl, "PUBLISHED");
  assert.deepEqual(after.slice(0, 100), before);
  assert.equal((await storedEvents(nats.url, place.stream)).length, 42);
  assert.deepEqual(relay.log.filter((line) => line.startsWith("error")), []);
});

// Rows may be PUBLISHED for a moment before their loss is noticed, so this waits until they are
// stored.
async function untilStored(place: FreshPlace): ReturnType<typeof outboxRows> {
  let problem: unknown;
  await until("all is stored", async () => {
    const rows = await untilAll(place.ownerUrl, "PUBLISHED");
    try {
      assertAllStored(await storedEvents(place.natsUrl, place.stream), rows);
      return true;
    } catch (error) {
      problem = error;
      return false;
    }
  }).catch((late) => {
    throw problem ?? late;
  });
  return await outboxRows(place.ownerUrl);
}

function generations({ ownerUrl }: FreshPlace): Promise<number> {
  return countRows(ownerUrl, "stream_generations");
}

interface Unsettled {
  id: string;
  settle(): Promise<Set<string>>;
}

// Publishes a row as a relay does. The caller settles it later.
async function publishWithoutSettling(place: FreshPlace): Promise<Unsettled> {
  const generation = await generations(place);
  const database = openDatabase(place.serviceUrl, "slow");
  const row = await insertLeased(place.ownerUrl, "slow:sku");
  const { id } = row;
  const sequence = await withNats(
    place.natsUrl,
    async (connection) =>
      (await connection.jetstream().publish(place.subject, "", { msgID: id })).seq,
  );
  const ackedAt = performance.now();
  const settle = async () => {
    const result = { generation, sequence, ackedAt };
    const owned = await outbox.settle(database, [{ row, kind: "done", result }]);
    await database.end();
    return owned;
  };
  return { id, settle };
}

// The row is inserted as leased, because the other relay would claim it first.
async function insertLeased(ownerUrl: string, key: string): Promise<OutboxRow> {
  const id = uuidv7();
  const token = crypto.randomUUID();
  const content = { event_type: "EntitlementGranted", payload: goodPayload(id, key, 1) };
  await ask(
    ownerUrl,
    `insert into outbox_events
       (event_id, event_type, aggregate_key, payload, status, locked_at, lease_until, claim_token)
     values ($1, $2, $3, $4, 'IN_FLIGHT', now(), now() + interval '1 minute', $5)`,
    [id, content.event_type, key, JSON.stringify(content.payload), token],
  );
  const claimedAt = performance.now();
  const none = { attempts: 0, takenOver: false };
  return {
    id,
    key,
    token,
    claimedAt,
    ...none,
    content: { ...content, traceparent: null, age_seconds: 0 },
  };
}

interface StoreCopy extends AsyncDisposable {
  take(): Promise<void>;
  restore(): Promise<void>;
}

// A copy of the files of the server, which is restarted to take or restore it.
async function copyOf(nats: NatsServer): Promise<StoreCopy> {
  const folder = await Deno.makeTempDir();
  const copy = async (from: string, to: string) => {
    await new Deno.Command("cp", { args: ["-a", `${from}/.`, to] }).output();
  };
  const take = async () => {
    await nats.stop();
    await copy(nats.storeDir, folder);
    await nats.start();
  };
  const restore = async () => {
    await nats.stop();
    await nats.wipe();
    await copy(folder, nats.storeDir);
    await nats.start();
  };
  await take();
  return { take, restore, [Symbol.asyncDispose]: () => Deno.remove(folder, { recursive: true }) };
}
