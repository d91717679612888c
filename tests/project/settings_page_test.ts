// docs/settings.md lists every setting with its default, and nothing else.
import assert from "node:assert/strict";
import { schema as entitlement } from "../../entitlement/config.ts";
import { schema as notification } from "../../notification/config.ts";

const page = await Deno.readTextFile(new URL("../../docs/settings.md", import.meta.url));
const shapes: Record<string, unknown> = { ...entitlement.shape, ...notification.shape };

// What the page says instead of a default that is worked out, or none.
const workedOut = ["the host's name", "from stream and durable", "likewise", "not set"];
// Read only by `deno task migrate` and `provision`.
const ofCommands = [
  ["nats.provision.url", "nats.url"],
  ["entitlement.migration.database.url", "entitlement.database.url"],
  ["notification.migration.database.url", "notification.database.url"],
];

interface Def {
  type: string;
  defaultValue?: unknown;
}

function defaultOf(key: string): string {
  const { type, defaultValue } = (shapes[key] as { def: Def }).def;
  if (type === "prefault") return defaultValue === "" ? "empty" : String(defaultValue);
  return type === "optional" ? "worked out" : "required";
}

// `a.b.c` / `.d` is a.b.c and a.b.d; `a.b-c` / `-d` is a.b-c and a.b-d.
function keysIn(cell: string): string[] {
  const [first = "", ...rest] = [...cell.matchAll(/`([a-z.-]+)`/g)].map(([, name]) => name ?? "");
  const others = rest.map((end) => first.slice(0, first.lastIndexOf(end.charAt(0))) + end);
  return [first, ...others];
}

function settingsOnPage(): [string, string][] {
  const rows = page.split("\n").filter((line) => line.startsWith("| `"));
  return rows.flatMap((row) => {
    const [, names = "", value = ""] = row.split("|").map((cell) => cell.trim());
    const keys = keysIn(names);
    const values = value.replaceAll("`", "").split(" / ");
    assert.ok(values.length === 1 || values.length === keys.length, row);
    return keys.map((key, at): [string, string] => {
      const said = values[at] ?? values[0] ?? "";
      return [key, workedOut.includes(said) ? "worked out" : said];
    });
  });
}

Deno.test("the settings page has every key once, with its default, and no other", () => {
  const wanted = [...Object.keys(shapes).map((key) => [key, defaultOf(key)]), ...ofCommands];
  assert.deepEqual(settingsOnPage().sort(), wanted.sort());
});
