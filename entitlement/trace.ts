// A trace id follows a change through commit, event and notification.

export interface Trace {
  traceId: string;
  traceparent: string | null;
}

const w3c = /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;
const visible = /^[\x21-\x7e]{1,255}$/;

// Taken from the caller where it is well formed, otherwise made: a bad trace header is no reason to
// refuse a change.
export function traceOf(headers: Headers): Trace {
  const given = headers.get("traceparent") ?? "";
  const parentId = w3c.exec(given)?.[1];
  const named = headers.get("X-Trace-Id") ?? "";
  const traceId = visible.test(named) ? named : parentId ?? randomHex(16);
  if (parentId) return { traceId, traceparent: given };
  const made = `00-${traceId}-${randomHex(8)}-01`;
  return { traceId, traceparent: w3c.test(made) ? made : null };
}

function randomHex(bytes: number): string {
  return crypto.getRandomValues(new Uint8Array(bytes)).toHex();
}
