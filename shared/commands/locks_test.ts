import assert from "node:assert/strict";
import { lockNumber } from "./locks.ts";

Deno.test("the lock number of a key is the beginning of its SHA-256", () => {
  assert.equal(lockNumber("idem-1"), -3433042825297469223n);
  assert.equal(lockNumber("idem-2"), 3499153717498652205n);
});
