import { create, toBinary } from "@bufbuild/protobuf";
import assert from "node:assert/strict";
import fc from "fast-check";
import { PointsEventSchema } from "../gen/points/v1/points_event_pb.ts";
import { UnreadableMessage } from "../unreadable.ts";
import { decodePointsEvent } from "./decode.ts";

const good = {
  eventId: "01A1EECE-E608-7DE8-B25D-E13B858611CE",
  occurredAt: { seconds: 1_767_323_045n, nanos: 678_901_999 },
  userId: "ann",
  unit: "points",
  pointAmount: 5n,
};

function bodyOf(fields: Record<string, unknown>): Uint8Array {
  return toBinary(PointsEventSchema, create(PointsEventSchema, { ...good, ...fields } as never));
}

Deno.test("a type of a newer schema is its number, the id has small letters, the time microseconds", () => {
  const { event_id, event_type, occurred_at } = decodePointsEvent(bodyOf({ eventType: 99 }));
  assert.equal(event_id, "01a1eece-e608-7de8-b25d-e13b858611ce");
  assert.equal(event_type, "99");
  assert.equal(occurred_at, "2026-01-02T03:04:05.678901Z");
});

Deno.test("events of points that can't be stored are refused", () => {
  const refused: [string, Record<string, unknown>][] = [
    ["event_id is not a UUID", { eventId: "" }],
    ["occurred_at is missing", { occurredAt: undefined }],
    ["point_amount is out of range", { pointAmount: -(2n ** 53n) }],
    ["balance is out of range", { balance: 2n ** 53n }],
    ["version is out of range", { version: 2n ** 53n }],
    ...["userId", "unit", "source", "sourceId", "transactionId", "reservationId", "traceId"].map(
      (name): [string, Record<string, unknown>] => [
        "a field contains a NUL, which can't be stored",
        { [name]: "a\0b" },
      ],
    ),
  ];
  for (const [message, fields] of refused) {
    assert.throws(
      () => decodePointsEvent(bodyOf(fields)),
      (error) => error instanceof UnreadableMessage && error.message === message,
      message,
    );
  }
});

Deno.test("bytes of any kind, and events of points with some bytes changed, are read or refused", () => {
  const changes = fc.array(fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 })), { maxLength: 5 });
  const changed = changes.map((changes) => {
    const body = bodyOf({});
    for (const [at, byte] of changes) body[at % body.length] = byte;
    return body;
  });
  fc.assert(
    fc.property(fc.oneof(fc.uint8Array({ maxLength: 300 }), changed), (body) => {
      try {
        const json = JSON.stringify(decodePointsEvent(body));
        assert.ok(json.isWellFormed() && !json.includes("\\u0000"), "PostgreSQL can't store it");
      } catch (error) {
        assert.ok(error instanceof UnreadableMessage, `${error}`);
      }
    }),
    { numRuns: 3_000 },
  );
});
