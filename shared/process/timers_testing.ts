// Runs the work with timers that don't wait.
export async function withoutPauses<Result>(work: () => Promise<Result>): Promise<Result> {
  const { setTimeout } = globalThis;
  globalThis.setTimeout = ((run: () => void) => setTimeout(run)) as typeof setTimeout;
  try {
    return await work();
  } finally {
    globalThis.setTimeout = setTimeout;
  }
}
