// The screenshots of the documentation. KENRI_WRITE_DOCS=true writes them.
import assert from "node:assert/strict";
import { root } from "../../tools/root.ts";
import type { Tab } from "./browser.ts";

/** Fails if the picture is missing or large. */
export async function shoot(tab: Tab, name: string): Promise<void> {
  const file = `${root}docs/${name}.png`;
  if (Deno.env.get("KENRI_WRITE_DOCS") === "true") {
    await Deno.writeFile(file, await tab.screenshot());
  }
  const { size } = await Deno.stat(file);
  assert.ok(size < 150_000, `${name}: ${size} bytes`);
}
