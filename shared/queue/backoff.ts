export interface Backoff {
  baseMs: number;
  maxMs: number;
  minMs: number;
  jitterMin: number;
  jitterMax: number;
}

// The pause after attempt number `attempt` has failed; the first attempt is number 1.
export function backoffMs(backoff: Backoff, attempt: number, random = Math.random()): number {
  const { baseMs, maxMs, minMs, jitterMin, jitterMax } = backoff;
  const grown = Math.min(maxMs, baseMs * 2 ** (attempt - 1));
  return Math.max(minMs, grown * (jitterMin + random * (jitterMax - jitterMin)));
}
