import assert from "node:assert/strict";
import fc from "fast-check";
import { UnreadablePayload } from "../payload.ts";
import { decodePointsEvent } from "./decode.ts";
import { encodePointsEvent } from "./encode.ts";

const id = "0192d4e0-7b6a-7c31-8f2e-5d8a4b6c9e10";
const reservation = "0192d4e0-7b6a-7c31-8f2e-5d8a4b6c9e11";
const text = fc.string({ unit: "binary" }).filter((value) => !value.includes("\0"));

const payload = fc.record({
  event_id: fc.constant(id),
  event_type: fc.constantFrom("PointsAdded", "PointsTaken"),
  occurred_at: fc.constant("2026-01-02T03:04:05.678901Z"),
  user_id: text,
  unit: text,
  point_amount: fc.maxSafeInteger(),
  balance: fc.maxSafeNat(),
  version: fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
  source: text,
  source_id: text,
  transaction_id: fc.constant(id),
  reservation_id: fc.constantFrom(reservation, null),
  trace_id: text,
}, { noNullPrototype: true });

Deno.test("an event of points is read as it was encoded, with no reservation if it had none", () => {
  fc.assert(fc.property(payload, (fields) => {
    assert.deepEqual(decodePointsEvent(encodePointsEvent(id, fields)), fields);
  }));
});

Deno.test("fields of points that can't be encoded are refused by name", () => {
  const [good] = fc.sample(payload, 1);
  const bad: [Record<string, unknown>, string][] = [
    [{ event_type: "EntitlementGranted" }, "event_type is unknown"],
    [{ occurred_at: "yesterday" }, "occurred_at is not a time"],
    [{ user_id: 1 }, "user_id is not a string"],
    [{ unit: null }, "unit is not a string"],
    ...["7", 1.5, 2 ** 53, null].flatMap((value): [Record<string, unknown>, string][] => [
      [{ point_amount: value }, "point_amount is not a whole number"],
      [{ balance: value }, "balance is not a whole number"],
    ]),
    [{ version: 0 }, "version is not a whole number above 0"],
    [{ source: undefined }, "source is not a string"],
    [{ source_id: undefined }, "source_id is not a string"],
    [{ transaction_id: null }, "transaction_id is not a string"],
    [{ reservation_id: undefined }, "reservation_id is not a string"],
    [{ trace_id: undefined }, "trace_id is not a string"],
  ];
  for (const [fields, message] of bad) {
    assert.throws(
      () => encodePointsEvent(id, { ...good, ...fields }),
      (error) => error instanceof UnreadablePayload && error.message === message,
      message,
    );
  }
});
