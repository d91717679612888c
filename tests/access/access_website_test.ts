// What another site can do, through a browser on the same machine, with a service that needs no
// credential: nothing that needs a preflight, and nothing that a form can send.
import assert from "node:assert/strict";
import { call, someFields } from "../support/api.ts";
import { startEntitlement } from "../support/entitlement.ts";

const Origin = "https://site.example";
const paths = ["/v1/entitlements/grants", "/operations/entitlement/dead-letters/send-back"];

Deno.test("no other site gets permission to read answers or to send JSON", async () => {
  await using kenri = await startEntitlement({ ENTITLEMENT_DEBUG_ENABLED: "true" });
  const wanted = { "Access-Control-Request-Method": "POST" };
  for (const path of [...paths, "/v1/users/ann/entitlements", "/metrics", "/console/live.js"]) {
    const headers = { Origin, ...wanted, "Access-Control-Request-Headers": "content-type" };
    for (const asked of [{ method: "OPTIONS", headers }, { headers: { Origin } }]) {
      const names = [...(await call(kenri.url + path, asked)).headers.keys()];
      assert.ok(!names.some((name) => name.startsWith("access-control-")), `${path}: ${names}`);
    }
  }
});

Deno.test("a request that a browser sends for another site without a preflight changes nothing", async () => {
  await using kenri = await startEntitlement({ ENTITLEMENT_DEBUG_ENABLED: "true" });
  const ofForms = ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"];
  for (const path of paths) {
    // A careless check would take the last one for JSON.
    for (const type of [...ofForms, "text/plain; application/json"]) {
      const { status } = await call(kenri.url + path, {
        method: "POST",
        headers: { Origin, "Content-Type": type, "Idempotency-Key": "k" },
        body: JSON.stringify(someFields),
      });
      assert.equal(status, 415, `${path} ${type}`);
    }
  }
  assert.deepEqual(await kenri.rows("select from entitlements"), []);
});
