import assert from "node:assert/strict";
import { uuidv5 } from "./uuidv5.ts";

Deno.test("an id is that of RFC 9562, appendix A.4", () => {
  const namespace = "6ba7b810-9dad-11d1-80b4-00c04fd430c8";
  assert.equal(uuidv5(namespace, "www.example.com"), "2ed6657d-e927-568b-95e1-2665a8aea6a2");
});

Deno.test("the name is UTF-8, and the namespace may have capital letters", () => {
  const namespace = "01a1eece-e608-7de8-b25d-e13b858611ce";
  const id = uuidv5(namespace, "ann\u{1f600}");
  assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.equal(uuidv5(namespace.toUpperCase(), "ann\u{1f600}"), id);
  assert.notEqual(uuidv5(namespace, "ann\u{1f601}"), id);
});
