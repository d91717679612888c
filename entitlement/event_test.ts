import assert from "node:assert/strict";
import { encodeEvent, UnreadablePayload } from "@kenri/proto/entitlement/encode.ts";
import { toMessage } from "./event.ts";
import type { OutboxRow } from "./outbox.ts";

const id = "0192d4e0-7b6a-7c31-8f2e-5d8a4b6c9e10";
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

function rowOf(content: Partial<OutboxRow["content"]>): OutboxRow {
  const event = { event_type: "EntitlementRevoked", payload, traceparent: null, age_seconds: 0 };
  const claimed = { attempts: 0, takenOver: false, token: "", claimedAt: 0 };
  return { id, key: "ann:book", ...claimed, content: { ...event, ...content } };
}

Deno.test("the headers contain what a consumer may need before it decodes the body", () => {
  const message = toMessage(rowOf({ traceparent: "00-a-b-01" }));
  assert.equal(message.id, id);
  assert.deepEqual(message.body, encodeEvent(id, payload));
  assert.deepEqual(message.headers, {
    event_type: "EntitlementRevoked",
    aggregate_key: "ann:book",
    occurred_at: payload.occurred_at,
    trace_id: "order-17",
    traceparent: "00-a-b-01",
  });
  assert.equal("traceparent" in toMessage(rowOf({})).headers, false);
});

Deno.test("a payload that is not an object, or has no fields, is refused with the reason", () => {
  const refused = [null, "text", 17].map((payload) => [payload, "The payload is not an object"]);
  const empty = [[], {}].map((payload) => [payload, "event_type is not a string"]);
  for (const [payload, message] of [...refused, ...empty]) {
    assert.throws(
      () => toMessage(rowOf({ payload })),
      (error) => error instanceof UnreadablePayload && error.message === message,
    );
  }
});
