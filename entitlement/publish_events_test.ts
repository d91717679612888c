import assert from "node:assert/strict";
import { encodeEvent } from "@kenri/proto/entitlement/encode.ts";
import { isSealed } from "@kenri/proto/entitlement/seal.ts";
import { encodePointsEvent } from "@kenri/proto/points/encode.ts";
import { eventTypes } from "./publish_events.ts";

const id = "0192d4e0-7b6a-7c31-8f2e-5d8a4b6c9e10";
const stream = { subjects: ["events", "points"] as [string, string] };
const payload = {
  event_id: id,
  event_type: "EntitlementRevoked",
  occurred_at: "2026-01-02T03:04:05.678901Z",
  user_id: "ann",
  stock_keeping_unit: "book",
  source: "refund",
  source_id: "p-1",
  version: 7,
  trace_id: "order-17",
};

Deno.test("a grant and a revoke become the event of the schema, sealed if there is a key", () => {
  const key = "a key of at least thirty-two letters";
  for (const name of ["EntitlementGranted", "EntitlementRevoked"]) {
    const fields = { ...payload, event_type: name };
    const open = eventTypes(stream, undefined).get(name)?.encode(id, fields);
    const sealed = eventTypes(stream, key).get(name)?.encode(id, fields);
    assert.deepEqual(open, { body: encodeEvent(id, fields), headers: {} });
    assert.deepEqual(sealed?.body, open.body);
    assert.ok(isSealed(open.body, sealed?.headers?.["seal"] ?? "", [key]));
  }
});

Deno.test("points that were added or taken become the event of their schema, under its subject and with its seal", () => {
  const key = "a key of at least thirty-two letters";
  const { stock_keeping_unit: _, ...others } = payload;
  const more = { unit: "points", point_amount: 5, balance: 12, transaction_id: id };
  for (const event_type of ["PointsAdded", "PointsTaken"]) {
    const fields = { ...others, ...more, event_type, reservation_id: null };
    const type = eventTypes(stream, key).get(event_type);
    assert.equal(type?.subject, "points");
    const { body, headers } = type.encode(id, fields);
    assert.deepEqual(body, encodePointsEvent(id, fields));
    assert.ok(isSealed(body, headers?.["seal"] ?? "", [key], "points event"));
  }
});
