export interface Backoff {
  baseMs: number;
  maxMs: number;
  minMs: number;
  jitterMin: number;
  jitterMax: number;
}

// The pause before the next try, after attempt number 1, 2, 3 and so on has failed.
export function backoffMs(backoff: Backoff, attempt: number, random = Math.random()): number {
  const { baseMs, maxMs, minMs, jitterMin, jitterMax } = backoff;
  const grown = Math.min(maxMs, baseMs * 2 ** (attempt - 1));
  return Math.max(minMs, grown * (jitterMin + random * (jitterMax - jitterMin)));
}
