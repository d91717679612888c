// docs/threat-model.md names tests that exist, for every threat.
import assert from "node:assert/strict";
import { read } from "../support/pages.ts";

const page = read("docs/threat-model.md");
const threats = page.split(/^### /m).slice(1).map((section) => {
  const [title = "", ...lines] = section.split(/^## /m)[0]?.split("\n") ?? [];
  const shown = [...lines.join("\n").matchAll(/`([\w/]+_test\.ts)`:\s+"([^"]+)"/g)]
    .map(([, file = "", name = ""]) => ({ file, name: name.replaceAll(/\s+/g, " ") }));
  return { title, text: lines.join(" "), shown };
});

Deno.test("every threat names what stops it and the tests that show it", () => {
  assert.ok(threats.length >= 20, `${threats.length}`);
  for (const { title, text, shown } of threats) {
    assert.match(text, /Stopped by: /, title);
    assert.ok(shown.length > 0, title);
    assert.equal(
      shown.length,
      text.match(/_test\.ts`/g)?.length,
      `${title}: a test without a name`,
    );
  }
});

Deno.test("the tests that the threat model names exist under these names", () => {
  for (const { title, shown } of threats) {
    for (const { file, name } of shown) {
      const source = read(file).replaceAll(/\s+/g, " ").replaceAll(/\$\{[^}]*\}/g, "…");
      // The tests of the checker are rows of a table.
      const written = name.replace(/^the checker notices that /, "");
      const isThere = source.includes(`"${written}"`) || source.includes(`\`${written}\``);
      assert.ok(isThere, `${title}: ${file} has no test "${name}"`);
    }
  }
});
