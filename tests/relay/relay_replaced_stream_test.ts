// A stream that is not the one that acknowledged the events, though it has its name and no connection
// was lost: the relay finds out what it lacks, and puts that back.
import assert from "node:assert/strict";
import { insertEvents, manyEvents, outboxRows, storedEvents, untilAll } from "../support/outbox.ts";
import { freshPlace, startRelay } from "../support/relays.ts";
import { snapshotOf } from "./stream_snapshot.ts";
import { withNats } from "../support/streams.ts";
import { until } from "../../tools/servers/wait.ts";

Deno.test("a stream that loses its end while the connection stays gets it again", async () => {
  await using place = await freshPlace();
  await using relay = startRelay(place);
  await insertEvents(place.ownerUrl, manyEvents({ keys: 10, versions: 1 }));
  await untilAll(place.ownerUrl, "PUBLISHED");
  await withNats(place.natsUrl, async (connection) => {
    const snapshot = await snapshotOf(connection, place.stream);
    await insertEvents(place.ownerUrl, manyEvents({ keys: 5, versions: 1 }));
    await untilAll(place.ownerUrl, "PUBLISHED");
    await snapshot.restore();
    const { state } = await (await connection.jetstreamManager()).streams.info(
      place.stream,
    );
    assert.equal(state.last_seq, 10);
  });
  // No connection comes and nothing is published: the relay has to look by itself.
  await until("they were put back", () => relay.log.some((line) => line.includes("5 events")));
  const rows = await untilAll(place.ownerUrl, "PUBLISHED");
  const stored = await storedEvents(place.natsUrl, place.stream);
  assert.deepEqual(stored.map(({ id }) => id), rows.map(({ event_id }) => event_id));
  assert.deepEqual(
    relay.log.filter((line) => line.startsWith("error")),
    [`error Stream ${place.stream} lost its messages after sequence 10, up to 15`],
  );
});

Deno.test("in a stream made anew that already holds messages nothing counts as kept", async () => {
  await using place = await freshPlace();
  const first = startRelay(place);
  const ids = await insertEvents(place.ownerUrl, manyEvents({ keys: 10, versions: 1 }));
  await untilAll(place.ownerUrl, "PUBLISHED");
  await first.stop();
  await withNats(place.natsUrl, async (connection) => {
    const manager = await connection.jetstreamManager();
    const { config } = await manager.streams.info(place.stream);
    await manager.streams.delete(place.stream);
    await manager.streams.add(config);
    // As many as there were, so that each old sequence has a message of somebody else.
    for (let i = 0; i < 12; i++) {
      await connection.jetstream().publish(place.subject, "", { msgID: `other-${i}` });
    }
  });
  await using _second = startRelay(place);
  await until("all lie in the new stream", async () => {
    const stored = await storedEvents(place.natsUrl, place.stream);
    return ids.every((id) => stored.some((event) => event.id === id));
  });
  const rows = await untilAll(place.ownerUrl, "PUBLISHED");
  assert.ok(rows.every(({ stream_seq }) => stream_seq > 12));
  assert.equal((await outboxRows(place.ownerUrl)).length, 10);
});

Deno.test("a stream made anew behind the relay's back is noticed, though it is as long as the old one", async () => {
  await using place = await freshPlace();
  await using _relay = startRelay(place);
  const ids = await insertEvents(place.ownerUrl, manyEvents({ keys: 3, versions: 1 }));
  await untilAll(place.ownerUrl, "PUBLISHED");
  await withNats(place.natsUrl, async (connection) => {
    const manager = await connection.jetstreamManager();
    const { config } = await manager.streams.info(place.stream);
    await manager.streams.delete(place.stream);
    await manager.streams.add(config);
    for (let i = 0; i < 5; i++) {
      await connection.jetstream().publish(place.subject, "", { msgID: `other-${i}` });
    }
  });
  await until("all lie in the new stream", async () => {
    const stored = await storedEvents(place.natsUrl, place.stream);
    return ids.every((id) => stored.some((event) => event.id === id));
  });
});
