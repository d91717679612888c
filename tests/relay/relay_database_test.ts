// A database that dies while the relay works: what was acknowledged is settled or published again
// under the same id, and neither the outage nor its length costs an event.
import assert from "node:assert/strict";
import { startNats } from "../../tools/servers/nats.ts";
import type { PostgresServer } from "../../tools/servers/postgres.ts";
import {
  assertAllStored,
  assertOnceAndInOrder,
  countOf,
  insertEvents,
  manyEvents,
  storedEvents,
  untilAll,
} from "../support/outbox.ts";
import { ownDatabase } from "../support/databases.ts";
import type { Place } from "../../tools/load/stage.ts";
import { startRelay } from "../support/relays.ts";
import { freshStreamNames, natsUrl as sharedNatsUrl, withNats } from "../support/streams.ts";
import { until } from "../../tools/servers/wait.ts";

Deno.test("a database that is killed again and again loses and doubles no event", async () => {
  await using place = await placeOfItsOwn();
  const { server, ownerUrl } = place;
  await insertEvents(ownerUrl, manyEvents({ keys: 50, versions: 100 }));
  await using relay = startRelay(place, { leaseMs: 2_000, maxAttempts: 5 });
  for (let kills = 0; kills < 3; kills++) {
    const before = await countOf(ownerUrl, "PUBLISHED");
    await until("it is at it", async () => await countOf(ownerUrl, "PUBLISHED") > before + 300);
    await until("it has recovered", () => recoveries(relay.log) === failures(relay.log));
    await server.kill();
    await until("it has noticed", () => failures(relay.log) > kills);
    await server.start();
  }
  const rows = await untilAll(ownerUrl, "PUBLISHED", "FAILED");
  const stored = await storedEvents(place.natsUrl, place.stream);
  assertOnceAndInOrder(stored, rows);
  assertAllStored(stored, rows);
});

Deno.test("an outage longer than the lease is one line in the log and no attempt", async () => {
  await using nats = await startNats();
  await using place = await placeOfItsOwn(nats.url);
  const { server, ownerUrl } = place;
  await using relay = startRelay(place, { leaseMs: 1_000, maxAttempts: 1 });
  await insertEvents(ownerUrl, [{ key: "first:sku", version: 1 }]);
  await untilAll(ownerUrl, "PUBLISHED");
  Deno.kill(nats.pid, "SIGSTOP"); // so that it has rows in hand, and claims no more
  await insertEvents(ownerUrl, manyEvents({ keys: 10, versions: 2 }));
  await until("it has them", async () => await countOf(ownerUrl, "IN_FLIGHT") === 20);
  await server.kill();
  Deno.kill(nats.pid, "SIGCONT");
  const from = performance.now();
  await until("its leases are over", () => performance.now() - from > 2_500);
  assert.equal(failures(relay.log), 1);
  await server.start();
  const rows = await untilAll(ownerUrl, "PUBLISHED", "FAILED");
  const stored = await storedEvents(place.natsUrl, place.stream);
  assertOnceAndInOrder(stored, rows);
  assertAllStored(stored, rows);
  assert.ok(rows.every(({ attempt_count }) => attempt_count === 0));
  await until("it says so", () => recoveries(relay.log) === failures(relay.log));
});

Deno.test("published_at is the time of the acknowledgement, however late it is settled", async () => {
  await using place = await placeOfItsOwn();
  const { server, ownerUrl } = place;
  await using relay = startRelay(place, { batchSize: 500 });
  await insertEvents(ownerUrl, manyEvents({ keys: 2_000, versions: 1 }));
  await until("it is at it", async () => await countOf(ownerUrl, "IN_FLIGHT") > 0);
  await server.kill();
  const from = performance.now();
  await until("a while is over", () => performance.now() - from > 1_500);
  await server.start();
  const rows = await untilAll(ownerUrl, "PUBLISHED");
  const storedAt = await timesInStream(place);
  const late = rows.filter(({ stream_seq, published_at }) =>
    Math.abs(Number(published_at) - Number(storedAt.get(stream_seq))) > 1_000
  );
  assert.deepEqual(late, []);
  assert.equal(failures(relay.log), 1);
});

const failures = (log: string[]) =>
  log.filter((line) => line.includes("can't use its table")).length;
const recoveries = (log: string[]) => log.filter((line) => line.includes("table again")).length;

interface OwnPlace extends Place, AsyncDisposable {
  server: PostgresServer;
  ownerUrl: string;
}

async function placeOfItsOwn(natsUrl = sharedNatsUrl): Promise<OwnPlace> {
  const database = await ownDatabase();
  return { ...freshStreamNames(), ...database, natsUrl };
}

function timesInStream({ natsUrl, stream }: Place): Promise<Map<number, Date>> {
  return withNats(natsUrl, async (connection) => {
    const manager = await connection.jetstreamManager();
    const { state } = await manager.streams.info(stream);
    const times = new Map<number, Date>();
    for (let seq = state.first_seq; seq <= state.last_seq; seq++) {
      times.set(seq, (await manager.streams.getMessage(stream, { seq })).time);
    }
    return times;
  });
}
