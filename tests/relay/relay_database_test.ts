// When the database dies while the relay works, acknowledged events are settled later or published
// again under the same id. No event is lost or fails, however long the outage is.
import assert from "node:assert/strict";
import { startNats } from "../../tools/servers/nats.ts";
import type { PostgresServer } from "../../tools/servers/postgres.ts";
import { countOf, insertEvents, manyEvents, untilAll } from "../support/outbox.ts";
import { untilArrived } from "./arrived.ts";
import { ownDatabase } from "../support/databases.ts";
import type { Place } from "../../tools/load/stage.ts";
import { startRelay } from "../support/relays.ts";
import { freshStreamNames, natsUrl as sharedNatsUrl, withNats } from "../support/streams.ts";
import { until } from "../../tools/servers/wait.ts";

Deno.test("a database that is killed repeatedly loses and duplicates no event", async () => {
  await using place = await placeOfItsOwn();
  const { server, ownerUrl } = place;
  await insertEvents(ownerUrl, manyEvents({ keys: 50, versions: 100 }));
  await using relay = startRelay(place, { leaseMs: 2_000, maxAttempts: 5 });
  for (let kills = 0; kills < 3; kills++) {
    const before = await countOf(ownerUrl, "PUBLISHED");
    await until("it publishes", async () => await countOf(ownerUrl, "PUBLISHED") > before + 300);
    await until("it has recovered", () => recoveries(relay.log) === failures(relay.log));
    await server.kill();
    await until("it has noticed", () => failures(relay.log) > kills);
    await server.start();
  }
  await untilArrived(place);
});

Deno.test("an outage longer than the lease is logged once and counts no attempt", async () => {
  await using nats = await startNats();
  await using place = await placeOfItsOwn(nats.url);
  const { server, ownerUrl } = place;
  await using relay = startRelay(place, { leaseMs: 1_000, maxAttempts: 1 });
  await insertEvents(ownerUrl, [{ key: "first:sku", version: 1 }]);
  await untilAll(ownerUrl, "PUBLISHED");
  Deno.kill(nats.pid, "SIGSTOP"); // so that the relay holds rows and claims no more
  await insertEvents(ownerUrl, manyEvents({ keys: 10, versions: 2 }));
  await until("it holds all", async () => await countOf(ownerUrl, "IN_FLIGHT") === 20);
  await server.kill();
  Deno.kill(nats.pid, "SIGCONT");
  const from = performance.now();
  await until("its leases are over", () => performance.now() - from > 2_500);
  assert.equal(failures(relay.log), 1);
  await server.start();
  const rows = await untilArrived(place);
  assert.ok(rows.every(({ attempt_count }) => attempt_count === 0));
  await until("it is logged", () => recoveries(relay.log) === failures(relay.log));
});

Deno.test("published_at is the time of the acknowledgement, however late it is settled", async () => {
  await using place = await placeOfItsOwn();
  const { server, ownerUrl } = place;
  await using relay = startRelay(place, { batchSize: 500 });
  await insertEvents(ownerUrl, manyEvents({ keys: 2_000, versions: 1 }));
  await until("it publishes", async () => await countOf(ownerUrl, "IN_FLIGHT") > 0);
  await server.kill();
  const from = performance.now();
  await until("the pause is over", () => performance.now() - from > 1_500);
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
