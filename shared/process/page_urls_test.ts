import assert from "node:assert/strict";
import { pageUrls } from "./setting_kinds.ts";

Deno.test("pages are urls with names or without, and a url without one is named by its host", () => {
  const read = (written: string) => pageUrls().parse(written);
  assert.deepEqual(read("https://kenri.example:99/two/"), [
    { name: "kenri.example:99", url: "https://kenri.example:99/two" },
  ]);
  assert.deepEqual(read("a-b=http://[::1]:1/?q=x, c=https://c.example"), [
    { name: "a-b", url: "http://[::1]:1" },
    { name: "c", url: "https://c.example" },
  ]);
});

Deno.test("a page that can't be a link is refused, even among others", () => {
  for (const one of ["x", "a=b", "ftp://a", "https://u:p@a", "javascript:alert(1)", ""]) {
    assert.equal(pageUrls().safeParse(`https://a.example,${one}`).success, false, one);
  }
});
