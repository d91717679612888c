import assert from "node:assert/strict";
import { type Fault, faultKinds, planOf, targetsOf, textOf } from "./plan.ts";
import { kenri } from "./system.ts";

const minute = { seed: 7, minutes: 1, kinds: faultKinds, targets: targetsOf(kenri) };

Deno.test("a plan depends only on its seed, length and kinds", () => {
  assert.deepEqual(planOf(minute), planOf(minute));
  assert.notDeepEqual(planOf(minute), planOf({ ...minute, seed: 8 }));
});

Deno.test("every kind of fault happens within minutes, at different times and places", () => {
  const plan = planOf({ ...minute, minutes: 5 });
  assert.deepEqual(new Set(plan.map(({ kind }) => kind)), new Set(faultKinds));
  assert.ok(new Set(plan.map(({ target }) => target)).size > 10);
});

Deno.test("a plan has only the requested kinds", () => {
  const plan = planOf({ ...minute, minutes: 4, kinds: ["cut", "kill"] });
  assert.deepEqual(new Set(plan.map(({ kind }) => kind)), new Set(["cut", "kill"]));
});

Deno.test("all faults end within the run, and some overlap", () => {
  for (let seed = 1; seed <= 50; seed++) {
    const plan = planOf({ ...minute, seed, minutes: 2 });
    assert.ok(plan.length > 20, `seed ${seed} has ${plan.length} faults`);
    assert.ok(plan.every(({ atMs, forMs }) => atMs + forMs <= 120_000));
    assert.ok(plan.some((fault, i) => plan.slice(i + 1).some((other) => overlap(fault, other))));
  }
});

Deno.test("no process and no server has two faults at once", () => {
  const kinds = ["kill", "stop", "freeze", "nats-kill", "nats-wipe", "nats-full"] as const;
  for (let seed = 1; seed <= 50; seed++) {
    const plan = planOf({ ...minute, seed, kinds });
    plan.forEach((fault, i) => {
      const rival = plan.slice(i + 1).find((other) =>
        other.target === fault.target && overlap(fault, other)
      );
      assert.ok(!rival, `${textOf(fault)} and ${rival && textOf(rival)}`);
    });
  }
});

Deno.test("every kind of fault is described on the page", async () => {
  const page = await Deno.readTextFile(
    new URL("../../docs/reliability/chaos.md", import.meta.url),
  );
  const described = [...page.matchAll(/^\| `([a-z-]+)` /gm)].map(([, kind]) => kind);
  assert.deepEqual(described, faultKinds);
});

function overlap(one: Fault, other: Fault): boolean {
  return one.atMs <= other.atMs + other.forMs && other.atMs <= one.atMs + one.forMs;
}
