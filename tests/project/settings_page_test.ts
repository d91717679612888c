// `deno task settings:page --check` keeps the tables of docs/settings.md current.
import assert from "node:assert/strict";
import { schema as entitlement } from "../../entitlement/config.ts";
import { schema as migrations } from "../../migrations/config.ts";
import { schema as notification } from "../../notification/config.ts";
import { schema as provision } from "../../tools/provision/config.ts";

const page = await Deno.readTextFile(new URL("../../docs/settings.md", import.meta.url));

Deno.test("the page of settings has every key of every program once, and no other", () => {
  const shapes = [entitlement, migrations, notification, provision].map(({ shape }) => shape);
  const keys = new Set(shapes.flatMap((shape) => Object.keys(shape)));
  const onPage = [...page.matchAll(/^\| `([a-z.-]+)`/gm)].map(([, key]) => key);
  assert.deepEqual(onPage.sort(), [...keys].sort());
});
