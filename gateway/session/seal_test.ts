import assert from "node:assert/strict";
import { Seals } from "./seal.ts";

const keys = [1, 2, 3].map((byte) => new Uint8Array(32).fill(byte)) as [
  ...[Uint8Array, Uint8Array, Uint8Array],
];
const later = () => Date.now() + 60_000;

Deno.test("the first key seals and every key opens", async () => {
  const sealed = await new Seals([keys[0]]).seal("session", { a: 1 }, later());
  const opened = await new Seals([keys[1], keys[0]]).open("session", sealed);
  assert.equal((opened as { a: number }).a, 1);
  assert.equal(await new Seals([keys[1], keys[2]]).open("session", sealed), undefined);
  const rotated = await new Seals([keys[1], keys[0]]).seal("session", { a: 1 }, later());
  assert.ok(await new Seals([keys[1]]).open("session", rotated));
  assert.equal(await new Seals([keys[0]]).open("session", rotated), undefined);
});

Deno.test("what was sealed for one purpose, or has expired, does not open", async () => {
  const seals = new Seals([keys[0]]);
  const sealed = await seals.seal("login", { a: 1 }, later());
  assert.equal(await seals.open("session", sealed), undefined);
  assert.equal(await seals.open("login", await seals.seal("login", {}, Date.now() - 1)), undefined);
});

Deno.test("a text that differs in one bit does not open, whichever bit it is", async () => {
  const seals = new Seals([keys[0]]);
  const sealed = await seals.seal("session", { a: 1 }, later());
  for (let at = 0; at < sealed.length; at++) {
    for (let bit = 0; bit < 7; bit++) {
      const changed = String.fromCharCode(sealed.charCodeAt(at) ^ (1 << bit));
      const other = sealed.slice(0, at) + changed + sealed.slice(at + 1);
      assert.equal(await seals.open("session", other), undefined, `bit ${bit} of ${at}`);
    }
  }
});
