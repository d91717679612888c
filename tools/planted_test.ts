import assert from "node:assert/strict";
import { newToken } from "../shared/access/tokens.ts";
import {
  leaksIn,
  leaksInFolder,
  plantedKey,
  plantedPassword,
  plantedPayload,
  plantedSecretKey,
  withPlanted,
} from "./planted.ts";

Deno.test("a planted secret is found anywhere in a text, and the report does not repeat it", async () => {
  const folder = await Deno.makeTempDir({ prefix: "kenri-planted-" });
  const token = newToken();
  const jwt = `eyJ${"a".repeat(20)}.eyJ${"b".repeat(30)}.${"c".repeat(43)}`;
  const url = withPlanted("postgres://127.0.0.1:5432/a", "ann");
  await Deno.writeTextFile(`${folder}/services-1`, `fine\ncan't reach ${url} (ECONNREFUSED)\n`);
  await Deno.writeTextFile(`${folder}/output`, `Bearer ${token}, ${plantedKey}-17 ${jwt}\n`);
  await Deno.writeTextFile(`${folder}/answers-1`, "nothing\n");
  const leaks = await leaksInFolder(folder);
  await Deno.remove(folder, { recursive: true });
  const found = leaks.map(({ where, what }) => `${where} ${what}`).sort();
  assert.deepEqual(found, [
    "output:1 a JWT",
    "output:1 a token",
    "output:1 an idempotency key",
    "services-1:2 a password",
  ]);
  assert.match(leaks.find(({ what }) => what === "a password")?.context ?? "", /ECONNREFUSED/);
  for (const secret of [plantedPassword, token, plantedKey, jwt]) {
    assert.ok(!JSON.stringify(leaks).includes(secret));
  }
});

Deno.test("operators may see an idempotency key, but no password", () => {
  assert.deepEqual(leaksIn("debug-1", `{"idempotency_key":"${plantedKey}-1"}`), []);
  assert.equal(leaksIn("debug-1", plantedPassword).length, 1);
  assert.equal(leaksIn("logs-1", plantedKey).length, 1);
});

Deno.test("the secret of an endpoint may be in the answer that creates it, and nowhere else", () => {
  const secret = `{"secret":"whsec_${"aB3/".repeat(8)}"}`;
  assert.deepEqual(leaksIn("secrets-1", secret), []);
  for (const where of ["answers-1", "debug-1", "services-1", "output"]) {
    assert.equal(leaksIn(where, secret).length, 1, where);
  }
});

Deno.test("the key of secrets and the payload of an order are found", () => {
  assert.equal(Uint8Array.fromBase64(plantedSecretKey, { alphabet: "base64url" }).length, 32);
  for (const secret of [plantedSecretKey, plantedPayload]) {
    assert.equal(leaksIn("services-1", `{"message":"${secret}"}`).length, 1);
    assert.equal(leaksIn("secrets-1", secret).length, 1);
  }
});

Deno.test("urls without a password get the planted one", () => {
  assert.equal(
    withPlanted("nats://127.0.0.1:1,nats://eve:own@127.0.0.1:2", "ann"),
    `nats://ann:${plantedPassword}@127.0.0.1:1,nats://eve:own@127.0.0.1:2`,
  );
});
