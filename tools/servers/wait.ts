// Tests wait for a condition and never for a fixed time. The limit only ends a test that has failed.
export async function until(
  what: string,
  condition: () => Promise<boolean> | boolean,
  withinMs = 20_000,
): Promise<void> {
  const from = performance.now();
  while (!await condition()) {
    const waitedMs = performance.now() - from;
    if (waitedMs > withinMs) {
      throw new Error(`Timed out after ${withinMs} ms, waiting until ${what}`);
    }
    // Most conditions open a connection, so a condition that takes long is checked less often.
    await new Promise((again) => setTimeout(again, Math.min(100, 10 + waitedMs / 10)));
  }
}

// The same for a promise.
export async function inTime<Result>(
  what: string,
  promise: Promise<Result>,
  withinMs = 20_000,
): Promise<Result> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => late.reject(new Error(`Timed out after ${withinMs} ms, waiting until ${what}`)),
    withinMs,
  );
  try {
    return await Promise.race([promise, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
