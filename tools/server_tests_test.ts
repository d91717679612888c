import assert from "node:assert/strict";
import { ofVersions } from "./server_tests.ts";

Deno.test("the tests for several server versions exist, and each is listed once", async () => {
  assert.equal(new Set(ofVersions).size, ofVersions.length);
  for (const path of ofVersions) await Deno.stat(new URL(`../${path}`, import.meta.url));
});
