import assert from "node:assert/strict";
import { traceOf } from "./trace.ts";

const id = "0af7651916cd43dd8448eb211c80319c";
const parent = `00-${id}-b7ad6b7169203331-01`;

Deno.test("a given traceparent is kept, and its trace id taken", () => {
  const trace = traceOf(new Headers({ traceparent: parent }));
  assert.deepEqual(trace, { traceId: id, traceparent: parent });
});

Deno.test("a given X-Trace-Id goes before that of the traceparent", () => {
  const trace = traceOf(new Headers({ traceparent: parent, "X-Trace-Id": "order-17" }));
  assert.deepEqual(trace, { traceId: "order-17", traceparent: parent });
});

Deno.test("an X-Trace-Id that is a W3C trace id begins a traceparent", () => {
  const { traceId, traceparent } = traceOf(new Headers({ "X-Trace-Id": id }));
  assert.equal(traceId, id);
  assert.match(traceparent ?? "", new RegExp(`^00-${id}-[0-9a-f]{16}-01$`));
});

Deno.test("an X-Trace-Id that is not has none", () => {
  for (const other of ["order-17", "0".repeat(32), id.toUpperCase()]) {
    const trace = traceOf(new Headers({ "X-Trace-Id": other }));
    assert.deepEqual(trace, { traceId: other, traceparent: null });
  }
});

Deno.test("without a usable header a trace is made, another one each time", () => {
  const unusable = [
    {},
    { "X-Trace-Id": "" },
    { "X-Trace-Id": "a b" },
    { "X-Trace-Id": "x".repeat(256) },
    { "X-Trace-Id": "\u00e9" },
    { traceparent: "" },
    { traceparent: `${parent}, ${parent}` },
    { traceparent: parent.toUpperCase() },
    { traceparent: `00-${"0".repeat(32)}-b7ad6b7169203331-01` },
    { traceparent: `00-${id}-${"0".repeat(16)}-01` },
    { traceparent: `ff-${id}-b7ad6b7169203331-01` },
  ];
  const made = unusable.map((headers) => {
    const { traceId, traceparent } = traceOf(new Headers(headers as Record<string, string>));
    assert.match(traceId, /^[0-9a-f]{32}$/);
    assert.notEqual(traceId, id);
    assert.match(traceparent ?? "", new RegExp(`^00-${traceId}-[0-9a-f]{16}-01$`));
    return traceId;
  });
  assert.equal(new Set(made).size, unusable.length);
});
