import assert from "node:assert/strict";
import { maxPerCheck, readCheck, readReceipt } from "./receipts.ts";

const encode = (value: unknown) => new TextEncoder().encode(JSON.stringify(value));
const receipt = {
  missing: [],
  dead: [],
  delivered_up_to: 7,
  undelivered: 0,
  settled_up_to: 5,
  unsettled: 2,
  remembered_since: "2026-01-01T00:00:00.000000Z",
};

Deno.test("a receipt is read as it was written", () => {
  assert.deepEqual(readReceipt(encode(receipt)), receipt);
});

Deno.test("a receipt of the previous release has no figures about redelivery, and they become 0", () => {
  const { settled_up_to: _upTo, unsettled: _unsettled, ...before } = receipt;
  assert.deepEqual(readReceipt(encode(before)), { ...receipt, settled_up_to: 0, unsettled: 0 });
});

Deno.test("an error in place of a receipt is thrown with its message", () => {
  assert.throws(
    () => readReceipt(encode({ error: "its database is unavailable" })),
    /database is unavailable/,
  );
});

Deno.test("a question with too many ids is refused", () => {
  const ids = Array.from({ length: maxPerCheck + 1 }, () => crypto.randomUUID());
  assert.equal(readCheck(encode({ event_ids: ids.slice(1) })).length, maxPerCheck);
  assert.throws(() => readCheck(encode({ event_ids: ids })));
});
