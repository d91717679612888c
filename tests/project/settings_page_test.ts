// `deno task settings:page --check` keeps the tables of docs/settings.md current.
import assert from "node:assert/strict";
import { schema as migrations } from "../../migrations/config.ts";
import { schema as provision } from "../../tools/provision/config.ts";
import { configs } from "../../tools/service_configs.ts";

const page = await Deno.readTextFile(new URL("../../docs/settings.md", import.meta.url));

Deno.test("the page of settings has every key of every program once, and no other", () => {
  const shapes = [...Object.values(configs).map(({ schema }) => schema), migrations, provision]
    .map(({ shape }) => shape);
  const keys = new Set(shapes.flatMap((shape) => Object.keys(shape)));
  const onPage = [...page.matchAll(/^\| `([a-z.-]+)`/gm)].map(([, key]) => key);
  assert.deepEqual(onPage.sort(), [...keys].sort());
});
