// A new service is a folder and a line in services.ts. So nothing else may name a service, except what
// is about that service: its docs, its container, its tests, and what `deno task services` writes.
import assert from "node:assert/strict";
import { root } from "../../tools/root.ts";
import { serviceNames } from "../../tools/services.ts";

const left: Record<string, string> = {
  "deno.json": "recover and redeliver are commands of one service",
  "client/": "it is the client of one service's API",
  "notification/program.ts": "it consumes the stream of the other service, and names it for dev",
  "notification/stream_settings.ts": "the settings of the stream of another service",
  "notification/backlog.ts": "the label of a metric about that stream",
  "notification/orders/": "it sends through another service",
  "notification/errors.ts": "the code for a missing setting of the other service",
  "sender/": "it sends for one service only",
  "gateway/": "it asks the services behind it, and has a code for each way in which one fails",
  "entitlement/reconciliation/": "it asks the receiver of its events, and says so to operators",
  "entitlement/metrics.ts": "the help of a metric of the reconciliation",
  "entitlement/migrations/0004_operations.sql": "applied, so it must not change",
  "shared/queue/statements.sql": "`deno task queue:statements` writes it",
  "tools/server_tests.ts": "a folder of tests has the name of its service",
  "tools/load/": "it stages the flow from a change to its notification",
  "tools/bench/": "each figure is about the work of one service",
  "tools/peers/": "it compares the relay of one service",
  "tools/chaos/": "its invariants are the promises of one flow",
  "tools/demo/": "it shows one flow",
  "tools/dev/": "two services share a secret, and a page receives the webhooks of one",
};

// Folders of docs and tests, of packages and caches; what a service is in proto is its events.
const apart = /^(docs|tests|proto|deploy|\.\w+|node_modules|dist|tools\/mutants\/lists)\//;
const kinds = /(\.(tsx?|js|css|sql|json)|^Dockerfile)$/;
const written = "Written by `deno task services`";

Deno.test("no file outside a service's folder names the service", async () => {
  const found: string[] = [];
  for await (const path of filesIn("")) {
    const text = await Deno.readTextFile(root + path);
    if (!text.includes(written)) found.push(...namesIn(path, text));
  }
  const placeOf = (line: string) => Object.keys(left).find((place) => line.startsWith(place));
  assert.deepEqual(found.filter((line) => !placeOf(line)), []);
  const unused = Object.keys(left).filter((place) =>
    !found.some((line) => placeOf(line) === place)
  );
  assert.deepEqual(unused, [], "These no longer name a service");
});

async function* filesIn(folder: string): AsyncGenerator<string> {
  for await (const { name, isDirectory } of Deno.readDir(root + folder)) {
    const path = `${folder}${name}`;
    if (apart.test(`${path}/`)) continue;
    if (isDirectory) yield* filesIn(`${path}/`);
    else if (kinds.test(name) && !/_test\.tsx?$/.test(name)) yield path;
  }
}

// Also ordinary words: of these only a setting, a folder or a text counts.
const words = ["sender", "account", "gateway", "matchmaking"];
const patternOf = (name: string) =>
  words.includes(name) ? `(?<="|/|\`)${name}(?=["/.\`])` : `${name}(?![a-z]\\w*)`;

/** The lines with the name itself, or as the beginning of a setting. Events have types of their own. */
function namesIn(path: string, text: string): string[] {
  const others = serviceNames.filter((name) => !path.startsWith(`${name}/`));
  return text.split("\n").flatMap((line, at) => {
    const rest = line.replaceAll(/(@kenri\/)?proto\/(gen\/)?\w+\//g, "");
    const isNamed = others.some((name) =>
      new RegExp(`(?<!\\w)(${patternOf(name)}|${name.toUpperCase()}_)`).test(rest)
    );
    return isNamed && !isGenerated(path, line) ? [`${path}:${at + 1}: ${line.trim()}`] : [];
  });
}

function isGenerated(path: string, line: string): boolean {
  if (path === "services.ts") return /^export \{ program as \w+ \} from /.test(line);
  if (path === "Dockerfile") return /^COPY (\w+)(\/deno\.json)? \1\/?$|--allow-env=/.test(line);
  return path === "deno.json" && line.includes("tools/run_service.ts ");
}
