// A stream may be replaced by another one of the same name without a reconnect. The relay finds out
// which events it lacks and republishes them.
import assert from "node:assert/strict";
import { insertEvents, manyEvents, outboxRows, storedEvents, untilAll } from "../support/outbox.ts";
import type { FreshPlace } from "../support/places.ts";
import { freshPlace, startRelay } from "../support/relays.ts";
import { snapshotOf } from "./stream_snapshot.ts";
import { readStream, withNats } from "../support/streams.ts";
import { ask } from "../../tools/servers/asking.ts";
import { decodePointsEvent, type PointsEventFields } from "../../proto/points/decode.ts";
import { pointsEventOf } from "../support/points_events.ts";
import { pointsSubjectOf } from "../../tools/load/stage.ts";
import { until } from "../../tools/servers/wait.ts";

Deno.test("a stream that loses its end without a reconnect gets those events again", async () => {
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
  // There is no reconnect and no publish, so the relay has to compare by itself.
  await until("they are republished", () => relay.log.some((line) => line.includes("5 events")));
  const rows = await untilAll(place.ownerUrl, "PUBLISHED");
  const stored = await storedEvents(place.natsUrl, place.stream);
  assert.deepEqual(stored.map(({ id }) => id), rows.map(({ event_id }) => event_id));
  assert.deepEqual(
    relay.log.filter((line) => line.startsWith("error")),
    [`error Stream ${place.stream} lost its messages after sequence 10, up to 15`],
  );
});

Deno.test("in a stream that was created anew and has messages, no old sequence counts as kept", async () => {
  await using place = await freshPlace();
  const first = startRelay(place);
  const ids = await insertEvents(place.ownerUrl, manyEvents({ keys: 10, versions: 1 }));
  await untilAll(place.ownerUrl, "PUBLISHED");
  await first.stop();
  await createAnew(place, 12);
  await using _second = startRelay(place);
  await untilStored(place, ids);
  const rows = await untilAll(place.ownerUrl, "PUBLISHED");
  assert.ok(rows.every(({ stream_seq }) => stream_seq > 12));
  assert.equal((await outboxRows(place.ownerUrl)).length, 10);
});

Deno.test("a relay notices a stream that was created anew without a reconnect, even one as long as before", async () => {
  await using place = await freshPlace();
  await using _relay = startRelay(place);
  const ids = await insertEvents(place.ownerUrl, manyEvents({ keys: 3, versions: 1 }));
  await untilAll(place.ownerUrl, "PUBLISHED");
  await createAnew(place, 5);
  await untilStored(place, ids);
});

/** Replaces the stream by a new one that has more messages, all of somebody else. */
function createAnew({ natsUrl, stream, subject }: FreshPlace, others: number): Promise<void> {
  return withNats(natsUrl, async (connection) => {
    const manager = await connection.jetstreamManager();
    const { config } = await manager.streams.info(stream);
    await manager.streams.delete(stream);
    await manager.streams.add(config);
    for (let i = 0; i < others; i++) {
      await connection.jetstream().publish(subject, "", { msgID: `other-${i}` });
    }
  });
}

function untilStored({ natsUrl, stream }: FreshPlace, ids: string[]): Promise<void> {
  return until("all are in the new stream", async () => {
    const stored = await storedEvents(natsUrl, stream);
    return ids.every((id) => stored.some((event) => event.id === id));
  });
}

Deno.test("a subject that a replica of an earlier release removes is added again, and no event fails for it", async () => {
  await using place = await freshPlace();
  await using relay = startRelay(place);
  await insertEvents(place.ownerUrl, manyEvents({ keys: 3, versions: 1 }));
  await untilAll(place.ownerUrl, "PUBLISHED");
  await withNats(place.natsUrl, async (connection) => {
    const { streams } = await connection.jetstreamManager();
    await streams.update(place.stream, { subjects: [place.subject] });
  });
  const event = pointsEventOf();
  await insertPoints(place.ownerUrl, event);
  await insertEvents(place.ownerUrl, manyEvents({ keys: 3, versions: 1 }));
  const rows = await untilAll(place.ownerUrl, "PUBLISHED");
  assert.ok(rows.every(({ attempt_count }) => attempt_count === 0));
  const stored = await readStream(place.natsUrl, place.stream);
  const [found] = stored.filter(({ subject }) => subject === pointsSubjectOf(place));
  assert.deepEqual(decodePointsEvent(found?.data ?? new Uint8Array()), event);
  assert.equal(found?.header.get("event_type"), "PointsAdded");
  assert.ok(relay.log.every((line) => !line.startsWith("error")));
});

function insertPoints(ownerUrl: string, event: PointsEventFields): Promise<unknown> {
  return ask(
    ownerUrl,
    `insert into outbox_events (event_id, event_type, aggregate_key, payload, created_at)
     values ($1, 'PointsAdded', 'points:ann:points', $2, now() - interval '2 days')`,
    [event.event_id, JSON.stringify(event)],
  );
}
