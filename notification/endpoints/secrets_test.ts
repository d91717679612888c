import assert from "node:assert/strict";
import { decryptSecret, encryptSecret, newSecret } from "./secrets.ts";

const endpointId = "019b7c2e-5a7e-7c3a-9a51-7d2f0e6f1a02";
const otherId = "019b7c2e-5a7e-7c3a-9a51-7d2f0e6f1a03";
const [oldKey, newKey] = [new Uint8Array(32).fill(1), new Uint8Array(32).fill(2)];
const undecryptable = /^Error: No secret-key decrypts the secret of the endpoint$/;

Deno.test("a secret has 32 random bytes", () => {
  assert.match(newSecret(), /^whsec_[A-Za-z0-9+/]{43}=$/);
  assert.notEqual(newSecret(), newSecret());
});

Deno.test("a secret is decrypted for its endpoint, however the id is written", () => {
  const secret = newSecret();
  const ciphertext = encryptSecret([newKey], endpointId, secret);
  assert.equal(decryptSecret([newKey], endpointId.toUpperCase(), ciphertext), secret);
  assert.throws(() => decryptSecret([newKey], otherId, ciphertext), undecryptable);
});

Deno.test("the same secret is never encrypted to the same bytes", () => {
  const secret = newSecret();
  const [one, two] = [1, 2].map(() => encryptSecret([newKey], endpointId, secret));
  assert.notDeepEqual(one, two);
});

Deno.test("after a rotation the first key encrypts, and the old one still decrypts", () => {
  const secret = newSecret();
  const before = encryptSecret([oldKey], endpointId, secret);
  const after = encryptSecret([newKey, oldKey], endpointId, secret);
  assert.equal(decryptSecret([newKey, oldKey], endpointId, before), secret);
  assert.equal(decryptSecret([newKey], endpointId, after), secret);
  assert.throws(() => decryptSecret([oldKey], endpointId, after), undecryptable);
});

Deno.test("a changed ciphertext is refused", () => {
  const ciphertext = encryptSecret([newKey], endpointId, newSecret());
  for (const at of ciphertext.keys()) {
    const changed = ciphertext.slice();
    changed[at] = (changed[at] ?? 0) ^ 1;
    assert.throws(() => decryptSecret([newKey], endpointId, changed), undecryptable);
  }
  assert.throws(
    () => decryptSecret([newKey], endpointId, ciphertext.slice(0, -1)),
    undecryptable,
  );
  assert.throws(() => decryptSecret([newKey], endpointId, new Uint8Array()), undecryptable);
});
