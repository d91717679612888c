import assert from "node:assert/strict";
import fc from "fast-check";
import { aggregateKeyOf } from "../entitlement/aggregate_key.ts";
import { pointsKeyOf, pointsKeyPrefixOf } from "./aggregate_key.ts";

// Short texts of few letters, so that pairs which look alike come often.
const part = fc.string({ unit: fc.constantFrom("a", "b", ":", "%", "2", "5", "3", "A") });

Deno.test("no two pairs of user and unit share a key, whatever a foreign message calls its unit", () => {
  fc.assert(
    fc.property(part, part, part, part, (user, unit, otherUser, otherUnit) => {
      const same = user === otherUser && unit === otherUnit;
      assert.equal(pointsKeyOf(user, unit) === pointsKeyOf(otherUser, otherUnit), same);
      const isOwn = pointsKeyOf(user, unit).startsWith(pointsKeyPrefixOf(otherUser));
      assert.equal(isOwn, user === otherUser);
    }),
    { numRuns: 5_000 },
  );
  assert.equal(pointsKeyOf("a:b%", "points"), "points:a%3Ab%25:points");
});

Deno.test("the key of a balance is never that of an entitlement", () => {
  const user = fc.oneof(part, fc.constant("points"));
  fc.assert(fc.property(user, part, user, part, (user, unit, otherUser, item) => {
    assert.notEqual(pointsKeyOf(user, unit), aggregateKeyOf(otherUser, item));
  }));
});
