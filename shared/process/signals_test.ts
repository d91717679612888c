import assert from "node:assert/strict";
import { pause, Wakeup } from "./signals.ts";

const never = 60_000;

Deno.test("a pause ends after its time", async () => {
  const from = performance.now();
  await pause(20, new AbortController().signal);
  assert.ok(performance.now() - from >= 15);
});

Deno.test("a pause ends at once when its signal is aborted, before or during it", async () => {
  const stop = new AbortController();
  const pausing = pause(never, stop.signal);
  stop.abort();
  const from = performance.now();
  await pausing;
  await pause(2_000, stop.signal);
  assert.ok(performance.now() - from < 1_900);
});

Deno.test("a trigger ends the wait", async () => {
  const wake = new Wakeup();
  const waiting = wake.wait(never, new AbortController().signal);
  wake.trigger();
  await waiting;
});

Deno.test("a trigger while nobody waits ends the next wait, and only that one", async () => {
  const wake = new Wakeup();
  const { signal } = new AbortController();
  wake.trigger();
  wake.trigger();
  await wake.wait(never, signal);
  const from = performance.now();
  await wake.wait(20, signal);
  assert.ok(performance.now() - from >= 15);
});

Deno.test("no wait leaves a listener on a signal that outlives it", async () => {
  const listeners = countListeners(new AbortController().signal);
  const wake = new Wakeup();
  for (let i = 0; i < 100; i++) {
    await pause(0, listeners.signal);
    const waiting = wake.wait(never, listeners.signal);
    wake.trigger();
    await waiting;
  }
  assert.equal(listeners.count, 0);
});

function countListeners(signal: AbortSignal): { signal: AbortSignal; count: number } {
  const counted = { signal, count: 0 };
  const { addEventListener, removeEventListener } = signal;
  signal.addEventListener = (...args: Parameters<typeof addEventListener>) => {
    counted.count++;
    addEventListener.apply(signal, args);
  };
  signal.removeEventListener = (...args: Parameters<typeof removeEventListener>) => {
    counted.count--;
    removeEventListener.apply(signal, args);
  };
  return counted;
}
