import assert from "node:assert/strict";
import { type EventRow, type EventType, toMessage, Unpublishable } from "./event_types.ts";

const id = "0192d4e0-7b6a-7c31-8f2e-5d8a4b6c9e10";
const payload = { occurred_at: "2026-01-02T03:04:05.678901Z", trace_id: "order-17", count: 7 };

const counted: EventType = {
  subject: "counts",
  encode: (id, { count }) => {
    if (typeof count !== "number") throw new Error("count is not a number");
    return { body: new TextEncoder().encode(`${id} ${count}`), headers: { unit: "one" } };
  },
};

function rowOf(content: Partial<EventRow["content"]>): EventRow {
  const event = { event_type: "Counted", payload, traceparent: null, ...content };
  return { id, key: "ann:book", token: "", attempts: 0, takenOver: false, content: event };
}

Deno.test("the headers contain what a consumer may need before it decodes the body", () => {
  const message = toMessage(rowOf({ traceparent: "00-a-b-01" }), counted);
  assert.equal(message.id, id);
  assert.equal(message.subject, "counts");
  assert.equal(new TextDecoder().decode(message.body), `${id} 7`);
  assert.deepEqual(message.headers, {
    event_type: "Counted",
    aggregate_key: "ann:book",
    occurred_at: payload.occurred_at,
    trace_id: "order-17",
    traceparent: "00-a-b-01",
    unit: "one",
  });
  assert.equal("traceparent" in (toMessage(rowOf({}), counted).headers ?? {}), false);
});

Deno.test("a payload that is not an object, or has no fields, is refused with the reason", () => {
  const refused = [null, "text", 17].map((payload) => [payload, "The payload is not an object"]);
  const empty = [[], {}].map((payload) => [payload, "count is not a number"]);
  for (const [payload, message] of [...refused, ...empty]) {
    assert.throws(
      () => toMessage(rowOf({ payload }), counted),
      (error) => error instanceof Unpublishable && error.message === message,
    );
  }
});
