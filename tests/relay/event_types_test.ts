// One relay publishes events of several types from a table that belongs to no service, each type on
// a subject of its own.
import assert from "node:assert/strict";
import { newOperation } from "../../shared/operators/operations.ts";
import { republishDead } from "../../shared/outbox/republish_dead.ts";
import { countRows } from "../../tools/servers/asking.ts";
import { until } from "../../tools/servers/wait.ts";
import { ask } from "../support/entitlement.ts";
import { deleteStream, readStream, withNats } from "../support/streams.ts";
import {
  announceCounted,
  counted,
  type CountedPlace,
  countedPlace,
  countedTypes,
  startCounted,
} from "./counted_events.ts";

const names = ["Counted", "Named"];
const events = Array.from({ length: 40 }, (_, count) => ({
  type: names[count % 2] ?? "",
  key: `key-${count % 4}`,
  count,
}));

Deno.test("each type of event is published on its subject, encoded in its way, in the order of its key", async () => {
  await using place = await countedPlace();
  const ids = await announceCounted(place, events);
  await using _relay = startCounted(place);
  await untilPublished(place, ids.length);
  const stored = await storedIn(place);
  assert.deepEqual(stored.map(({ id }) => id).sort(), ids.toSorted());
  for (const { id, subject, body, headers } of stored) {
    const { type, key, count } = events[ids.indexOf(id)] ?? assert.fail(id);
    assert.equal(subject, `${place.subject}.${type.toLowerCase()}`);
    assert.equal(body, type === "Counted" ? `${count}` : JSON.stringify({ id, count }));
    assert.equal(headers["format"], type === "Counted" ? undefined : "json");
    assert.deepEqual([headers["event_type"], headers["aggregate_key"]], [type, key]);
  }
  for (const [key, wanted] of Map.groupBy(events.keys(), (at) => events[at]?.key)) {
    const arrived = stored.filter(({ headers }) => headers["aggregate_key"] === key);
    assert.deepEqual(arrived.map(({ id }) => id), wanted.map((at) => ids[at]));
  }
});

Deno.test("a stream that is lost gets its events again, on all subjects", async () => {
  await using place = await countedPlace();
  const ids = await announceCounted(place, events);
  await using relay = startCounted(place);
  await untilPublished(place, ids.length);
  await deleteStream(place.natsUrl, place.stream);
  await until("they are republished", () => relay.log.some((line) => line.includes("40 events")));
  await untilPublished(place, ids.length);
  const stored = await storedIn(place);
  assert.deepEqual(stored.map(({ id }) => id).sort(), ids.toSorted());
  const { config } = await withNats(
    place.natsUrl,
    async (connection) => await (await connection.jetstreamManager()).streams.info(place.stream),
  );
  const subjectOf = (name: string) => `${place.subject}.${name.toLowerCase()}`;
  assert.deepEqual(config.subjects, names.map(subjectOf));
  const outcomes = await ask(
    place.ownerUrl,
    "select outcome, count(*)::int from counted_attempts group by outcome",
  );
  assert.deepEqual(outcomes, [{ outcome: "LOST", count: 40 }]);
});

Deno.test("an event of an unknown type ends FAILED and holds up no other, and can be sent back when the type is known", async () => {
  await using place = await countedPlace();
  const known = countedTypes(place);
  const ids = await announceCounted(place, [
    { type: "Named", key: "a", count: 1 },
    { type: "Counted", key: "a", count: 2 },
    { type: "Counted", key: "b", count: 3 },
  ]);
  {
    await using _older = startCounted(place, new Map([...known].slice(0, 1)));
    await untilPublished(place, 2);
  }
  const [failed] = await ask(
    place.ownerUrl,
    "select event_id, attempt_count, last_error from counted_events where status = 'FAILED'",
  );
  const last_error = 'This version does not know the event type "Named"';
  assert.deepEqual(failed, { event_id: ids[0], attempt_count: 2, last_error });
  const operation = newOperation({ who: "kim", reason: "updated" });
  assert.deepEqual(await republishDead(place.database, counted, ids, operation), [ids[0]]);
  await using _newer = startCounted(place);
  await untilPublished(place, 3);
  const stored = await storedIn(place);
  assert.deepEqual(stored.map(({ headers }) => headers["aggregate_key"]).sort(), ["a", "a", "b"]);
  assert.deepEqual(stored.at(-1)?.id, ids[0]);
});

async function untilPublished({ ownerUrl }: CountedPlace, count: number): Promise<void> {
  await until("they are published", async () => {
    return await countRows(ownerUrl, "counted_events where status = 'PUBLISHED'") === count;
  });
}

async function storedIn({ natsUrl, stream }: CountedPlace) {
  return (await readStream(natsUrl, stream)).map(({ subject, data, header }) => ({
    id: header.get("Nats-Msg-Id"),
    subject,
    body: new TextDecoder().decode(data),
    headers: Object.fromEntries(header.keys().map((name) => [name, header.get(name)])),
  }));
}
