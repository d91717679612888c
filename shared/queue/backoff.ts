export type Backoff = GrowingBackoff | { delaysMs: number[] }; // the last delay repeats

export interface GrowingBackoff {
  baseMs: number;
  maxMs: number;
  minMs: number;
  jitterMin: number;
  jitterMax: number;
}

// The pause after attempt number `attempt` has failed; the first attempt is number 1.
export function backoffMs(backoff: Backoff, attempt: number, random = Math.random()): number {
  if ("delaysMs" in backoff) {
    return backoff.delaysMs[attempt - 1] ?? backoff.delaysMs.at(-1) ?? 0;
  }
  const { baseMs, maxMs, minMs, jitterMin, jitterMax } = backoff;
  const grown = Math.min(maxMs, baseMs * 2 ** (attempt - 1));
  return Math.max(minMs, grown * (jitterMin + random * (jitterMax - jitterMin)));
}
