import { fromBinary } from "@bufbuild/protobuf";
import {
  EntitlementEventSchema,
  EntitlementEventType,
} from "@kenri/proto/gen/entitlement/v1/entitlement_event_pb.ts";
import assert from "node:assert/strict";
import { UnreadablePayload } from "@kenri/proto/entitlement/encode.ts";
import { toMessage } from "./event.ts";
import type { OutboxRow } from "./outbox.ts";

const id = "0192d4e0-7b6a-7c31-8f2e-5d8a4b6c9e10";
const payload = {
  event_id: id,
  event_type: "EntitlementGranted",
  occurred_at: "2026-01-02T03:04:05.678901Z",
  user_id: "ann",
  stock_keeping_unit: "book 🎫",
  source: "purchase",
  source_id: "p-1",
  version: 7,
  trace_id: "order-17",
};

function rowOf(content: Partial<OutboxRow["content"]>): OutboxRow {
  return {
    id,
    key: "ann:book 🎫",
    attempts: 0,
    takenOver: false,
    token: "",
    claimedAt: 0,
    content: {
      event_type: "EntitlementGranted",
      payload,
      traceparent: null,
      age_seconds: 0,
      ...content,
    },
  };
}

Deno.test("the message carries every field of the change, its time to the microsecond", () => {
  const { body } = toMessage(rowOf({}));
  const { $typeName: _, occurredAt, ...event } = fromBinary(EntitlementEventSchema, body);
  assert.deepEqual(event, {
    eventId: id,
    eventType: EntitlementEventType.GRANTED,
    userId: "ann",
    stockKeepingUnit: "book 🎫",
    source: "purchase",
    sourceId: "p-1",
    version: 7n,
    traceId: "order-17",
  });
  assert.equal(occurredAt?.seconds, BigInt(Date.UTC(2026, 0, 2, 3, 4, 5) / 1_000));
  assert.equal(occurredAt?.nanos, 678_901_000);
});

Deno.test("a whole second and a time before 1970 keep their value", () => {
  const times = { "2026-01-02T03:04:05Z": 0, "1969-12-31T23:59:59.25Z": 250_000_000 };
  for (const [occurred_at, nanos] of Object.entries(times)) {
    const { body } = toMessage(rowOf({ payload: { ...payload, occurred_at } }));
    const { occurredAt } = fromBinary(EntitlementEventSchema, body);
    assert.equal(occurredAt?.nanos, nanos);
    assert.equal(occurredAt?.seconds, BigInt(Math.floor(Date.parse(occurred_at) / 1_000)));
  }
});

Deno.test("the headers say what a consumer may want to know before it reads the body", () => {
  const message = toMessage(rowOf({ traceparent: "00-a-b-01" }));
  assert.equal(message.id, id);
  assert.deepEqual(message.headers, {
    event_type: "EntitlementGranted",
    aggregate_key: "ann:book 🎫",
    occurred_at: payload.occurred_at,
    trace_id: "order-17",
    traceparent: "00-a-b-01",
  });
  assert.equal("traceparent" in toMessage(rowOf({})).headers, false);
});

Deno.test("a revoke is told from a grant", () => {
  const revoked = { event_type: "EntitlementRevoked" };
  const { body, headers } = toMessage(rowOf({ ...revoked, payload: { ...payload, ...revoked } }));
  const { eventType } = fromBinary(EntitlementEventSchema, body);
  assert.equal(eventType, EntitlementEventType.REVOKED);
  assert.equal(headers["event_type"], "EntitlementRevoked");
});

Deno.test("a payload that can't be read is said to be so, with the field that is at fault", () => {
  const bad: [unknown, RegExp][] = [
    [null, /^The payload is not an object$/],
    ["text", /^The payload is not an object$/],
    [[], /^event_type is not a string$/],
    [{}, /^event_type is not a string$/],
    [{ ...payload, event_type: "Other" }, /^event_type is unknown$/],
    [{ ...payload, event_type: "__proto__" }, /^event_type is unknown$/],
    [{ ...payload, occurred_at: "yesterday" }, /^occurred_at is not a time$/],
    [{ ...payload, user_id: 1 }, /^user_id is not a string$/],
    [{ ...payload, source: null }, /^source is not a string$/],
    [{ ...payload, trace_id: undefined }, /^trace_id is not a string$/],
    ...["7", 1.5, NaN, 2 ** 53, 0, -1, null].map((version): [unknown, RegExp] => [
      { ...payload, version },
      /^version is not a whole number above 0$/,
    ]),
  ];
  for (const [unreadable, message] of bad) {
    assert.throws(() => toMessage(rowOf({ payload: unreadable })), (error) => {
      assert.ok(error instanceof UnreadablePayload);
      assert.match(error.message, message);
      return true;
    });
  }
});
