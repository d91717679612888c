import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import assert from "node:assert/strict";
import { PointsEventSchema, PointsEventType } from "../../gen/points/v1/points_event_pb.ts";

const event = create(PointsEventSchema, {
  eventId: "e1",
  eventType: PointsEventType.TAKEN,
  occurredAt: { seconds: 1_767_225_600n, nanos: 123_000_000 }, // 2026-01-01T00:00:00.123Z
  userId: "user-1",
  unit: "points",
  pointAmount: -3n,
  balance: 9_007_199_254_740_991n, // 2^53 - 1, the highest
  version: 300n,
  source: "shop",
  sourceId: "order-1",
  transactionId: "t1",
  reservationId: "r1",
  traceId: "trace",
});

// One line per field: tag, length, value. Written by hand from the encoding's specification, so
// that a new library or a new generator can't quietly move the wire format.
const wire = [
  "0a02" + "6531",
  "1002",
  "1a0b" + "0880f2d6ca06" + "10c0a9d33a",
  "2206" + "757365722d31",
  "2a06" + "706f696e7473",
  "30" + "fdffffffffffffffff01",
  "38" + "ffffffffffffff0f",
  "40" + "ac02",
  "4a04" + "73686f70",
  "5207" + "6f726465722d31",
  "5a02" + "7431",
  "6202" + "7231",
  "6a05" + "7472616365",
].join("");

Deno.test("an event of points has the bytes it always had, and they give it back", () => {
  assert.equal(toBinary(PointsEventSchema, event).toHex(), wire);
  assert.deepEqual(fromBinary(PointsEventSchema, Uint8Array.fromHex(wire)), event);
});

Deno.test("the types of events of points keep their numbers", () => {
  assert.deepEqual(PointsEventType, { UNSPECIFIED: 0, ADDED: 1, TAKEN: 2 });
});

Deno.test("a type and a field of a newer schema survive being read and written again", () => {
  const newer = "1063" + "f20601" + "78"; // type 99, and field 110, the string "x"
  const decoded = fromBinary(PointsEventSchema, Uint8Array.fromHex(newer));
  assert.equal(decoded.eventType, 99);
  assert.equal(toBinary(PointsEventSchema, decoded).toHex(), newer);
});
