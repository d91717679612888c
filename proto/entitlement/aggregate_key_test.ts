import assert from "node:assert/strict";
import fc from "fast-check";
import { aggregateKeyOf, isKeyOf, keyPrefixOf } from "./aggregate_key.ts";

// Short texts of few letters, so that pairs which look alike come often.
const part = fc.string({ unit: fc.constantFrom("a", "b", ":", "%", "2", "5", "3", "A") });
const ordinary = fc.string({ unit: "binary" }).filter((text) => !/[%:]/.test(text));

Deno.test("no two pairs of user and item share a key", () => {
  fc.assert(
    fc.property(part, part, part, part, (user, item, otherUser, otherItem) => {
      const same = user === otherUser && item === otherItem;
      assert.equal(aggregateKeyOf(user, item) === aggregateKeyOf(otherUser, otherItem), same);
    }),
    { numRuns: 5_000 },
  );
  assert.notEqual(aggregateKeyOf("a", "b:c"), aggregateKeyOf("a:b", "c"));
  assert.notEqual(aggregateKeyOf("a%3Ab", "c"), aggregateKeyOf("a:b", "c"));
});

Deno.test("the key of ordinary texts is the two with a colon between them", () => {
  fc.assert(fc.property(ordinary, ordinary, (user, item) => {
    assert.equal(aggregateKeyOf(user, item), `${user}:${item}`);
  }));
});

Deno.test("a key has one colon, and begins with the prefix of its own user only", () => {
  fc.assert(fc.property(part, part, part, (user, item, other) => {
    const key = aggregateKeyOf(user, item);
    assert.equal(key.split(":").length, 2);
    assert.equal(key.startsWith(keyPrefixOf(other)), user === other);
    assert.equal(isKeyOf(other, key), user === other);
  }));
});

Deno.test("a key of the form before, which may be that of several users, is that of none", () => {
  assert.equal(isKeyOf("dan", "dan:book"), true);
  assert.equal(isKeyOf("dan", "dan:x:book"), false);
  assert.equal(isKeyOf("dan:x", "dan:x:book"), false);
});
