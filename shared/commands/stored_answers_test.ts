import assert from "node:assert/strict";
import { type Identity, replayOf, storedKeyOf } from "./stored_answers.ts";

// The SHA-256 of ["PAY","ann",10].
const stored = {
  request_hash: "fa05acb39b2fb2a7f3f2e513c29477e0b5066a8aed6f269b6aca00bb11991686",
  response_code: 201,
  response_body: '{"paid": 10}',
};

function identity(...request: Identity["request"]): Identity {
  return { key: "key-1", request };
}

Deno.test("the same request gets the stored answer, byte for byte", () => {
  assert.deepEqual(replayOf(stored, identity("PAY", "ann", 10)), {
    status: 201,
    body: '{"paid": 10}',
    outcome: "replayed",
  });
});

Deno.test("a request that differs in a field or in its command does not get the stored answer", () => {
  const others = [
    identity("TAKE", "ann", 10),
    identity("PAY", "bob", 10),
    identity("PAY", "ann", "10"),
    identity("PAY", "ann"),
    identity("PAY", "ann", 10, null),
  ];
  for (const other of others) assert.equal(replayOf(stored, other), undefined, `${other.request}`);
});

Deno.test("no caller has a key of another caller", () => {
  const keys = [["", "a"], ["a", "a"], ["b", "a"], ["a", "b"]].map(
    ([caller = "", idempotencyKey = ""]) => storedKeyOf({ caller, idempotencyKey }),
  );
  assert.deepEqual(keys, ["a", "a a", "b a", "a b"]);
});
