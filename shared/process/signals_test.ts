import assert from "node:assert/strict";
import { Bell, pause } from "./signals.ts";

const never = 60_000;

Deno.test("a pause ends after its time", async () => {
  const from = performance.now();
  await pause(20, new AbortController().signal);
  assert.ok(performance.now() - from >= 15);
});

Deno.test("a pause ends at once when its signal is aborted, before it or meanwhile", async () => {
  const stop = new AbortController();
  const pausing = pause(never, stop.signal);
  stop.abort();
  const from = performance.now();
  await pausing;
  await pause(2_000, stop.signal);
  assert.ok(performance.now() - from < 1_900);
});

Deno.test("a ring ends the wait", async () => {
  const bell = new Bell();
  const waiting = bell.wait(never, new AbortController().signal);
  bell.ring();
  await waiting;
});

Deno.test("a ring while nobody waits is kept, once", async () => {
  const bell = new Bell();
  const { signal } = new AbortController();
  bell.ring();
  bell.ring();
  await bell.wait(never, signal);
  const from = performance.now();
  await bell.wait(20, signal);
  assert.ok(performance.now() - from >= 15);
});

Deno.test("no wait leaves a listener behind on a signal that lives on", async () => {
  const listeners = countListeners(new AbortController().signal);
  const bell = new Bell();
  for (let i = 0; i < 100; i++) {
    await pause(0, listeners.signal);
    const waiting = bell.wait(never, listeners.signal);
    bell.ring();
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
