import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import assert from "node:assert/strict";
import {
  EntitlementEventSchema,
  EntitlementEventType,
} from "../../gen/entitlement/v1/entitlement_event_pb.ts";

const event = create(EntitlementEventSchema, {
  eventId: "6f1c2a34-5b6d-4e7f-8a9b-0c1d2e3f4a5b",
  eventType: EntitlementEventType.GRANTED,
  occurredAt: { seconds: 1_767_225_600n, nanos: 123_000_000 }, // 2026-01-01T00:00:00.123Z
  userId: "user-1",
  stockKeepingUnit: "sku-1",
  source: "purchase",
  sourceId: "purchase-1",
  version: 9_007_199_254_740_993n, // 2^53 + 1, which no `number` can hold
  traceId: "4bf92f3577b34da6a3ce929d0e0e4736",
});

// One line per field: tag, length, value. Written by hand from the encoding's specification, so
// that a new library or a new generator can't quietly move the wire format.
const wire = [
  "0a24" + "36663163326133342d356236642d346537662d386139622d306331643265336634613562",
  "1001",
  "1a0b" + "0880f2d6ca06" + "10c0a9d33a",
  "2206" + "757365722d31",
  "2a05" + "736b752d31",
  "3208" + "7075726368617365",
  "3a0a" + "70757263686173652d31",
  "40" + "8180808080808010",
  "4a20" + "3462663932663335373762333464613661336365393239643065306534373336",
].join("");

Deno.test("an event has the bytes it always had", () => {
  assert.equal(toBinary(EntitlementEventSchema, event).toHex(), wire);
});

Deno.test("the bytes of an event give the event back", () => {
  const decoded = fromBinary(EntitlementEventSchema, Uint8Array.fromHex(wire));

  assert.deepEqual(decoded, event);
  assert.equal(typeof decoded.version, "bigint");
});

Deno.test("the types of events keep their numbers", () => {
  assert.deepEqual(EntitlementEventType, { UNSPECIFIED: 0, GRANTED: 1, REVOKED: 2 });
});

Deno.test("an event type of a newer schema keeps its number", () => {
  const decoded = fromBinary(EntitlementEventSchema, Uint8Array.fromHex("1063"));

  assert.equal(decoded.eventType, 99);
  assert.equal(toBinary(EntitlementEventSchema, decoded).toHex(), "1063");
});

Deno.test("a field of a newer schema survives being read and written again", () => {
  const newer = wire + "f20601" + "78"; // field 110, the string "x"

  const decoded = fromBinary(EntitlementEventSchema, Uint8Array.fromHex(newer));

  assert.equal(toBinary(EntitlementEventSchema, decoded).toHex(), newer);
});

Deno.test("a body that is not an event is refused", () => {
  const cut = Uint8Array.fromHex(wire).subarray(0, -1);

  assert.throws(() => fromBinary(EntitlementEventSchema, cut));
});
