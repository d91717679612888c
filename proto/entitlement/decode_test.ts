import { create, toBinary } from "@bufbuild/protobuf";
import assert from "node:assert/strict";
import fc from "fast-check";
import {
  type EntitlementEvent,
  EntitlementEventSchema,
} from "../gen/entitlement/v1/entitlement_event_pb.ts";
import { UnreadableMessage } from "../unreadable.ts";
import { decodeEvent } from "./decode.ts";

function bodyOf(event: Partial<Omit<EntitlementEvent, "$typeName" | "$unknown">>): Uint8Array {
  return toBinary(EntitlementEventSchema, create(EntitlementEventSchema, event as never));
}

// Texts that PostgreSQL can store.
const text = fc.string({ unit: "binary" }).filter((value) => !value.includes("\0"));
const event = fc.record({
  eventId: fc.uuid(),
  eventType: fc.integer({ min: 0, max: 2 ** 31 - 1 }),
  occurredAt: fc.record({
    seconds: fc.bigInt({ min: -62_135_596_800n, max: 253_402_300_799n }),
    nanos: fc.integer({ min: 0, max: 999_999_999 }),
  }),
  userId: text,
  stockKeepingUnit: text,
  source: text,
  sourceId: text,
  version: fc.bigInt({ min: 0n, max: BigInt(Number.MAX_SAFE_INTEGER) }),
  traceId: text,
});

Deno.test("an event is decoded as it was encoded", () => {
  fc.assert(fc.property(event, (event) => {
    const { occurred_at, ...others } = decodeEvent(bodyOf(event as never));
    const knownType = ["0", "EntitlementGranted", "EntitlementRevoked"][event.eventType];
    assert.deepEqual(others, {
      event_id: event.eventId,
      event_type: knownType ?? `${event.eventType}`,
      user_id: event.userId,
      stock_keeping_unit: event.stockKeepingUnit,
      source: event.source,
      source_id: event.sourceId,
      version: Number(event.version),
      trace_id: event.traceId,
    });
    assert.equal(Math.floor(Date.parse(occurred_at) / 1_000), Number(event.occurredAt.seconds));
  }));
});

Deno.test("arbitrary bytes are decoded or refused, and never end in another error", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), (body) => isDecodedOrRefused(body)),
    { numRuns: 2_000 },
  );
});

Deno.test("an event with some of its bytes changed is decoded or refused, and never ends in another error", () => {
  const changes = fc.array(fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 })), { maxLength: 5 });
  fc.assert(
    fc.property(event, changes, fc.nat(), (event, changes, cut) => {
      const body = bodyOf(event as never);
      for (const [at, byte] of changes) body[at % body.length] = byte;
      isDecodedOrRefused(body);
      isDecodedOrRefused(body.subarray(0, cut % body.length));
    }),
    { numRuns: 1_000 },
  );
});

function isDecodedOrRefused(body: Uint8Array): void {
  try {
    const fields = decodeEvent(body);
    const json = JSON.stringify(fields);
    assert.ok(!json.includes("\\u0000"), "PostgreSQL can't store it");
    assert.ok(json.isWellFormed());
    assert.deepEqual(JSON.parse(json), fields);
  } catch (error) {
    assert.ok(error instanceof UnreadableMessage, `${error}`);
  }
}

const good = {
  eventId: "01A1EECE-E608-7DE8-B25D-E13B858611CE",
  occurredAt: { seconds: 1_767_323_045n, nanos: 678_901_999 },
  userId: "ann",
};

Deno.test("an event id in capitals is decoded in small letters", () => {
  const { event_id } = decodeEvent(bodyOf(good as never));
  assert.equal(event_id, "01a1eece-e608-7de8-b25d-e13b858611ce");
});

Deno.test("times are decoded to the microsecond, from the year 1 to the year 9999", () => {
  const timeOf = (seconds: bigint, nanos = 0) =>
    decodeEvent(bodyOf({ ...good, occurredAt: { seconds, nanos } } as never)).occurred_at;
  assert.equal(timeOf(1_767_323_045n, 678_901_999), "2026-01-02T03:04:05.678901Z");
  assert.equal(timeOf(0n), "1970-01-01T00:00:00.000000Z");
  assert.equal(timeOf(-1n, 1_000), "1969-12-31T23:59:59.000001Z");
  assert.equal(timeOf(-62_135_596_800n), "0001-01-01T00:00:00.000000Z");
  assert.equal(timeOf(253_402_300_799n, 999_999_999), "9999-12-31T23:59:59.999999Z");
});

const refused: [string, Record<string, unknown>][] = [
  ["event_id is not a UUID", { eventId: "" }],
  ["event_id is not a UUID", { eventId: "01a1eece-e608-7de8-b25d-e13b858611ce " }],
  ["event_id is not a UUID", { eventId: "{01a1eece-e608-7de8-b25d-e13b858611ce}" }],
  ["occurred_at is missing", { occurredAt: undefined }],
  ["occurred_at is out of range", { occurredAt: { seconds: -62_135_596_801n, nanos: 0 } }],
  ["occurred_at is out of range", { occurredAt: { seconds: 253_402_300_800n, nanos: 0 } }],
  ["occurred_at is out of range", { occurredAt: { seconds: 2n ** 63n - 1n, nanos: 0 } }],
  ["occurred_at is out of range", { occurredAt: { seconds: 0n, nanos: -1 } }],
  ["occurred_at is out of range", { occurredAt: { seconds: 0n, nanos: 1_000_000_000 } }],
  ["version is out of range", { version: 2n ** 53n }],
  ["version is out of range", { version: -(2n ** 63n) }],
  ...["userId", "stockKeepingUnit", "source", "sourceId", "traceId"].map(
    (name): [string, Record<string, unknown>] => [
      "a field contains a NUL, which can't be stored",
      { [name]: "a\0b" },
    ],
  ),
];

for (const [message, fields] of refused) {
  const shown = JSON.stringify(
    fields,
    (_key, value) => typeof value === "bigint" ? `${value}` : value,
  );
  Deno.test(`${shown} is refused: ${message}`, () => {
    assert.throws(
      () => decodeEvent(bodyOf({ ...good, ...fields } as never)),
      (error) => error instanceof UnreadableMessage && error.message === message,
    );
  });
}
