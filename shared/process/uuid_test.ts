import assert from "node:assert/strict";
import fc from "fast-check";
import { uuidv7 } from "./uuid.ts";

Deno.test("an id is a UUID of version 7", () => {
  assert.match(uuidv7(), /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
});

Deno.test("an id begins with its time, to the millisecond", () => {
  const times = fc.integer({ min: 0, max: 2 ** 48 - 1 });
  fc.assert(fc.property(times, (time) => {
    const begin = uuidv7(time).replace("-", "").slice(0, 12);
    assert.equal(parseInt(begin, 16), time);
  }));
});

Deno.test("ids of the same millisecond differ", () => {
  const ids = new Set(Array.from({ length: 10_000 }, () => uuidv7(0)));
  assert.equal(ids.size, 10_000);
});
