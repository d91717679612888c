import assert from "node:assert/strict";
import fc from "fast-check";
import { reasonOf } from "./reason.ts";

Deno.test("every reason is one line that fits its column and that PostgreSQL can store", () => {
  assert.equal(reasonOf(new Error("x".repeat(2_000))).length, 1_000);
  assert.ok(reasonOf("😀".repeat(600).slice(1)).isWellFormed());
  assert.ok(reasonOf("x" + "😀".repeat(600)).isWellFormed());
  fc.assert(fc.property(fc.string({ unit: "binary", maxLength: 2_000, size: "max" }), (text) => {
    const reason = reasonOf(new Error(text));
    assert.ok(reason.length <= 1000);
    assert.ok(reason.isWellFormed());
    assert.doesNotMatch(reason, /[\0\n\r]/);
  }));
});
