// A busy machine may give a process no processor time. A replica that stalls loses its leases, and
// when the run itself stalls, so do all links, because it carries them. That is an unplanned fault,
// so it is measured.

export interface Stall {
  from: number;
  until: number;
}

const everyMs = 100;
/** A process that is only busy stays below this. */
const stallMs = 500;

/** Returns a function that stops watching. */
export function watchStalls(report: (stall: Stall) => void, now: () => number): () => void {
  let last = now();
  const timer = setInterval(() => {
    const from = last;
    last = now();
    if (last - from >= everyMs + stallMs) report({ from, until: last });
  }, everyMs);
  Deno.unrefTimer(timer);
  return () => clearInterval(timer);
}
