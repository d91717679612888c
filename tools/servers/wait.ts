// Tests wait for a condition and never for a time. The limit only ends a test that has failed.
export async function until(
  what: string,
  condition: () => Promise<boolean> | boolean,
  withinMs = 20_000,
): Promise<void> {
  const from = performance.now();
  while (!await condition()) {
    const waitedMs = performance.now() - from;
    if (waitedMs > withinMs) throw new Error(`Waited ${withinMs} ms in vain: ${what}`);
    // Most conditions open a connection, so those that take long are looked at less often.
    await new Promise((again) => setTimeout(again, Math.min(100, 10 + waitedMs / 10)));
  }
}

// The same for what is promised.
export async function inTime<Result>(
  what: string,
  promise: Promise<Result>,
  withinMs = 20_000,
): Promise<Result> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => late.reject(new Error(`Waited ${withinMs} ms in vain: ${what}`)),
    withinMs,
  );
  try {
    return await Promise.race([promise, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
