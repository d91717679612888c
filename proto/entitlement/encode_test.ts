import { fromBinary } from "@bufbuild/protobuf";
import assert from "node:assert/strict";
import {
  type EntitlementEvent,
  EntitlementEventSchema,
  EntitlementEventType,
} from "../gen/entitlement/v1/entitlement_event_pb.ts";
import { UnreadablePayload } from "../payload.ts";
import { encodeEvent } from "./encode.ts";

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

function encoded(fields: Record<string, unknown>): EntitlementEvent {
  return fromBinary(EntitlementEventSchema, encodeEvent(id, { ...payload, ...fields }));
}

Deno.test("an encoded event has every field of the change, its time to the microsecond", () => {
  const { $typeName: _, occurredAt, ...event } = encoded({});
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

Deno.test("a time without a fraction and a time before 1970 are encoded exactly", () => {
  const times = { "2026-01-02T03:04:05Z": 0, "1969-12-31T23:59:59.25Z": 250_000_000 };
  for (const [occurred_at, nanos] of Object.entries(times)) {
    const { occurredAt } = encoded({ occurred_at });
    assert.equal(occurredAt?.nanos, nanos);
    assert.equal(occurredAt?.seconds, BigInt(Math.floor(Date.parse(occurred_at) / 1_000)));
  }
});

Deno.test("a revoke has a type of its own", () => {
  const { eventType } = encoded({ event_type: "EntitlementRevoked" });
  assert.equal(eventType, EntitlementEventType.REVOKED);
});

Deno.test("fields that can't be encoded are refused with the name of the first of them", () => {
  const bad: [Record<string, unknown>, RegExp][] = [
    [{ event_type: undefined }, /^event_type is not a string$/],
    [{ event_type: "Other" }, /^event_type is unknown$/],
    [{ event_type: "__proto__" }, /^event_type is unknown$/],
    ...["yesterday", "2026-13-02T03:04:05Z", "2026-01-02", "2026-01-02T03:04:05Z\r\nx: y"].map(
      (occurred_at): [Record<string, unknown>, RegExp] => [
        { occurred_at },
        /^occurred_at is not a time$/,
      ],
    ),
    [{ user_id: 1 }, /^user_id is not a string$/],
    [{ stock_keeping_unit: 5 }, /^stock_keeping_unit is not a string$/],
    [{ source: null }, /^source is not a string$/],
    [{ trace_id: undefined }, /^trace_id is not a string$/],
    ...["7", 1.5, NaN, 2 ** 53, 0, -1, null].map((version): [Record<string, unknown>, RegExp] => [
      { version },
      /^version is not a whole number above 0$/,
    ]),
  ];
  for (const [fields, message] of bad) {
    assert.throws(() => encoded(fields), (error) => {
      assert.ok(error instanceof UnreadablePayload);
      assert.match(error.message, message);
      return true;
    });
  }
});
