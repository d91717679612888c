import assert from "node:assert/strict";
import { randomHex } from "./random.ts";

Deno.test("random text has two digits for each byte, and none is given twice", () => {
  const some = Array.from({ length: 2_000 }, (_, i) => randomHex(8 + i % 9));
  assert.ok(some.every((text, i) => text.length === 2 * (8 + i % 9) && /^[0-9a-f]+$/.test(text)));
  assert.equal(new Set(some.map((text) => text.slice(0, 16))).size, some.length);
});
