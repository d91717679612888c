import assert from "node:assert/strict";
import fc from "fast-check";
import { aggregateKeyOf } from "../entitlement/aggregate_key.ts";
import { pointsKeyOf } from "../points/aggregate_key.ts";
import { matchmakingKeyOf, matchmakingKeyPrefixOf } from "./aggregate_key.ts";

// Short texts of few letters, so that pairs which look alike come often.
const part = fc.string({ unit: fc.constantFrom("a", "b", ":", "%", "2", "5", "3", "A") });

Deno.test("no two pairs of user and ticket share a key, whatever a broken ticket is called", () => {
  fc.assert(
    fc.property(part, part, part, part, (user, ticket, otherUser, otherTicket) => {
      const key = matchmakingKeyOf(user, ticket);
      const same = user === otherUser && ticket === otherTicket;
      assert.equal(key === matchmakingKeyOf(otherUser, otherTicket), same);
      assert.equal(key.startsWith(matchmakingKeyPrefixOf(otherUser)), user === otherUser);
    }),
    { numRuns: 5_000 },
  );
  assert.equal(matchmakingKeyOf("a:b%", "rank-1"), "matchmaking:a%3Ab%25:rank-1");
});

Deno.test("the key of a ticket is never that of an entitlement or of a balance", () => {
  const user = fc.oneof(part, fc.constantFrom("matchmaking", "points"));
  fc.assert(fc.property(user, part, user, part, (user, ticket, otherUser, item) => {
    const key = matchmakingKeyOf(user, ticket);
    assert.notEqual(key, aggregateKeyOf(otherUser, item));
    assert.notEqual(key, pointsKeyOf(otherUser, item));
  }));
});
