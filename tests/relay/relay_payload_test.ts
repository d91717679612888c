// The relay publishes a payload as the message of the contract, or the row is FAILED at once.
import assert from "node:assert/strict";
import { decodeEvent } from "../../proto/entitlement/decode.ts";
import { ask } from "../support/entitlement.ts";
import {
  assertAllStored,
  goodPayload,
  insertEvents,
  outboxRows,
  storedEvents,
  untilAll,
} from "../support/outbox.ts";
import { freshPlace, startRelay } from "../support/relays.ts";

const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

Deno.test("a message has the headers and the body of the contract", async () => {
  await using place = await freshPlace();
  const key = "ユーザー 1:sku-α";
  const [id] = await insertEvents(place.ownerUrl, [{ key, version: 7, traceparent }]);
  await using _relay = startRelay(place);
  await untilAll(place.ownerUrl, "PUBLISHED");
  const [message] = await storedEvents(place.natsUrl, place.stream);
  assert.deepEqual(message?.headers, {
    "Nats-Msg-Id": id,
    event_type: "EntitlementGranted",
    aggregate_key: key,
    occurred_at: "2026-01-02T03:04:05.678901Z",
    trace_id: "0af7651916cd43dd8448eb211c80319c",
    traceparent,
  });
  assert.deepEqual(decodeEvent(message.body), goodPayload(id ?? "", key, 7));
});

Deno.test("an unreadable payload fails at once, and the events beside it are published", async () => {
  await using place = await freshPlace();
  const poison: [payload: unknown, reason: RegExp][] = [
    [{}, /event_type is not a string/],
    [null, /not an object/],
    [{ ...good(), stock_keeping_unit: 5 }, /stock_keeping_unit is not a string/],
    [{ ...good(), event_type: "x".repeat(2_000_000) }, /event_type is unknown/],
    [{ ...good(), occurred_at: "2026-01-02T03:04:05Z\r\nx: y" }, /occurred_at is not a time/],
    [{ ...good(), version: 1e300 }, /version is not a whole number/],
  ];
  const ids = await insertEvents(
    place.ownerUrl,
    poison.flatMap(([payload], i) => [
      { key: `bad-${i}:sku`, version: 1, payload },
      { key: `good-${i}:sku`, version: 1 },
    ]),
  );
  await using relay = startRelay(place, { maxAttempts: 10 });
  const rows = await untilAll(place.ownerUrl, "PUBLISHED", "FAILED");
  const failed = rows.filter((_, i) => i % 2 === 0);
  for (const [i, { status, attempt_count, last_error }] of failed.entries()) {
    assert.equal(status, "FAILED");
    assert.equal(attempt_count, 1);
    assert.match(last_error ?? "", poison[i]?.[1] as RegExp);
    assert.ok(relay.log.some((line) => line.includes(`gave up on ${ids[i * 2]}`)));
  }
  const published = rows.filter((_, i) => i % 2 === 1);
  assertAllStored(await storedEvents(place.natsUrl, place.stream), published);
});

Deno.test("an event whose key would break its headers is not published, and holds up no other", async () => {
  await using place = await freshPlace();
  await insertEvents(place.ownerUrl, [
    { key: "a\r\nNats-Msg-Id: b:sku", version: 1 },
    { key: "b:sku", version: 1 },
  ]);
  await using _relay = startRelay(place, { maxAttempts: 1 });
  const [bad, good] = await untilAll(place.ownerUrl, "PUBLISHED", "FAILED");
  assert.match(bad?.last_error ?? "", /The header aggregate_key has a line break/);
  assert.equal(good?.status, "PUBLISHED");
});

Deno.test("an event that the stream already has is settled with its sequence there", async () => {
  await using place = await freshPlace();
  await using _relay = startRelay(place);
  await insertEvents(place.ownerUrl, [{ key: "a:sku", version: 1 }, { key: "b:sku", version: 1 }]);
  const before = await untilAll(place.ownerUrl, "PUBLISHED");
  await ask(
    place.ownerUrl,
    `update outbox_events
     set status = 'PENDING', published_at = null, stream_seq = null, stream_generation = null`,
  );
  await untilAll(place.ownerUrl, "PUBLISHED");
  const placeOf = (
    { event_id, stream_seq }: { event_id: string; stream_seq: number },
  ) => [event_id, stream_seq];
  assert.deepEqual((await outboxRows(place.ownerUrl)).map(placeOf), before.map(placeOf));
  assert.equal((await storedEvents(place.natsUrl, place.stream)).length, 2);
});

function good(): Record<string, unknown> {
  return goodPayload(crypto.randomUUID(), "user:sku", 1);
}
