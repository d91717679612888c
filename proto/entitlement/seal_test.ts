import assert from "node:assert/strict";
import { isSealed, sealed, type SealedMessage, sealHeader } from "./seal.ts";

const [key, other] = ["k".repeat(32), "o".repeat(32)];
const body = new TextEncoder().encode("an event");
const message = { id: "1", headers: { event_type: "EntitlementGranted" }, body };

Deno.test("a seal is valid for its body and its key only, the present or an earlier one", () => {
  const { [sealHeader]: seal = "", ...others } = sealed<SealedMessage>(message, key).headers;
  assert.deepEqual(others, message.headers);
  assert.match(seal, /^[0-9a-f]{64}$/);
  assert.ok(isSealed(body, seal, [key]));
  assert.ok(isSealed(body, seal, [other, key]));
  assert.ok(!isSealed(body, seal, [other]));
  assert.ok(!isSealed(body, seal, []));
  assert.ok(!isSealed(new TextEncoder().encode("an Event"), seal, [key]));
  for (const wrong of ["", seal.slice(1), `${seal}0`, "é".repeat(32)]) {
    assert.ok(!isSealed(body, wrong, [key]), wrong);
  }
});

Deno.test("the seal of one kind of event is not valid for another", () => {
  const { [sealHeader]: seal = "" } = sealed<SealedMessage>(message, key, "points event").headers;
  assert.ok(isSealed(body, seal, [key], "points event"));
  assert.ok(!isSealed(body, seal, [key]));
});

Deno.test("without a key a message stays as it is", () => {
  assert.deepEqual(sealed(message, undefined), message);
});
