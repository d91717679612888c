import { randomHex } from "../process/random.ts";
import { w3cTraceparent } from "../telemetry/tracing.ts";

// The trace id of a request goes with its change through the commit to its events and their consumers.

export interface Trace {
  traceId: string;
  traceparent: string | null;
}

const visible = /^[\x21-\x7e]{1,255}$/;

// Takes the trace of the caller if its headers are valid, and makes one otherwise: an invalid trace
// header is no reason to refuse a change. While traces are exported, `active` is the span of this
// request, which continues the trace of the caller and replaces its traceparent.
export function traceOf(headers: Headers, active?: string): Trace {
  const given = active ?? headers.get("traceparent") ?? "";
  const parentId = w3cTraceparent.exec(given)?.[1];
  const named = headers.get("X-Trace-Id") ?? "";
  const traceId = visible.test(named) ? named : parentId ?? randomHex(16);
  if (parentId) return { traceId, traceparent: given };
  const made = `00-${traceId}-${randomHex(8)}-01`;
  return { traceId, traceparent: w3cTraceparent.test(made) ? made : null };
}
