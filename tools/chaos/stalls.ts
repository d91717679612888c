// A machine may have no processor time to spare. A replica that stands still loses its leases, and when
// the run itself stands still, which carries all traffic, then so do all ways. Nobody has planned it,
// but it is a fault like any other: it is measured.

export interface Stall {
  from: number;
  until: number;
}

const everyMs = 100;
/** A process that is merely busy stays below. */
const stallMs = 500;

/** Returns what ends the watch. */
export function watchStalls(tell: (stall: Stall) => void, now: () => number): () => void {
  let last = now();
  const timer = setInterval(() => {
    const from = last;
    last = now();
    if (last - from >= everyMs + stallMs) tell({ from, until: last });
  }, everyMs);
  Deno.unrefTimer(timer);
  return () => clearInterval(timer);
}
