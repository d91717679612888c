// The services describe their API completely, in /openapi.json and on a page.
import assert from "node:assert/strict";
import { startAccount } from "../support/account.ts";
import { type Answer, call, command, grant, post, someFields } from "../support/api.ts";
import { describedBy, type Json } from "./described.ts";
import { startEntitlement } from "../support/entitlement.ts";
import { startGateway, untilConnected } from "../support/gateway.ts";
import { freshPlace, startNotification } from "../support/notification.ts";

let urls: string[];
const running = new AsyncDisposableStack();

Deno.test.beforeAll(async () => {
  const debug = { ENTITLEMENT_DEBUG_ENABLED: "true", NOTIFICATION_DEBUG_ENABLED: "true" };
  const entitlement = running.use(await startEntitlement(debug));
  const place = running.use(await freshPlace());
  const notification = running.use(await startNotification(place, debug));
  const account = running.use(await startAccount({ ACCOUNT_DEBUG_ENABLED: "true" }));
  const gateway = running.use(await startGateway(account, { GATEWAY_DEBUG_ENABLED: "true" }));
  await untilConnected(gateway);
  urls = [entitlement.url, notification.url, account.url, gateway.url];
});
Deno.test.afterAll(() => running.disposeAsync());

Deno.test("every operation has a unique id, a title, and a described group", async () => {
  for (const url of urls) {
    const { api, operations } = await describedBy(url);
    const groups = api.tags.map(({ name }: Json) => name);
    for (const { name, described } of operations) {
      assert.ok(described.summary ?? described.description, name);
      assert.equal(described.tags.length, 1, name);
      assert.ok(groups.includes(described.tags[0]), name);
    }
    const ids = operations.map(({ described }) => described.operationId);
    assert.equal(new Set(ids).size, ids.length);
    for (const id of ids) assert.match(id, /^[a-z][a-zA-Z0-9]*$/);
  }
});

Deno.test("every operation describes its errors, and Retry-After with each 503", async () => {
  for (const url of urls) {
    const { operations } = await describedBy(url);
    for (const { name, described } of operations) {
      const statuses = Object.keys(described.responses);
      assert.ok(statuses.includes("500") && statuses.includes("503"), name);
      assert.equal(described.responses[503].headers["Retry-After"].required, true, name);
      for (const status of statuses.filter((status) => status >= "400")) {
        const { schema } = described.responses[status].content["application/json"];
        assert.deepEqual(schema, { $ref: "#/components/schemas/Error" }, `${name} ${status}`);
      }
    }
  }
});

Deno.test("the examples of a change are the answers that the service gives", async () => {
  const [url = ""] = urls;
  const { api } = await describedBy(url);
  const { post: granting } = api.paths["/v1/entitlements/grants"];
  const [key] = granting.parameters;
  const { example } = granting.requestBody.content["application/json"];
  const answers: Record<string, Answer> = {
    200: await post(url, "grants", example, key.schema.example),
    409: await grant(url, example),
    400: await post(url, "grants", { ...example, user_id: undefined }, "example-400"),
    413: await post(url, "grants", "x".repeat(20_000), "example-413"),
    415: await post(url, "grants", someFields, "example-415", { "Content-Type": "text/xml" }),
  };
  for (const [status, { json, headers }] of Object.entries(answers)) {
    const described = granting.responses[status];
    const { example, examples = {} } = described.content["application/json"];
    const expected = example ?? examples[json.code].value;
    assert.deepEqual({ ...json, updated_at: expected.updated_at }, {
      ...expected,
      updated_at: expected.updated_at,
    });
    for (const name of Object.keys(described.headers ?? {})) {
      const { required } = described.headers[name];
      assert.ok(!required || headers.has(name), `${status} ${name}`);
    }
  }
  const conflict = await post(url, "revokes", example, key.schema.example);
  const { examples } = granting.responses[409].content["application/json"];
  assert.deepEqual(conflict.json, examples.IDEMPOTENCY_KEY_CONFLICT.value);
});

Deno.test("the example of each command is accepted, and answered as its example says", async () => {
  const [url = ""] = urls;
  const { operations } = await describedBy(url);
  for (const { name, path, described } of operations) {
    const example = described.requestBody?.content["application/json"].example;
    if (example === undefined || !path.startsWith("/v1/")) continue;
    const user_id = path.startsWith("/v1/points/") ? "points" : crypto.randomUUID();
    const { status, json, text } = await command(url + path, { ...example, user_id }, path);
    const expected = described.responses[status]?.content["application/json"].example;
    assert.ok(status < 300 && expected, `${name}: ${text}`);
    assert.deepEqual(kindsOf(json), kindsOf(expected), name);
  }
});

/** The same value with the kind of each text and number in its place. */
function kindsOf(json: Json): Json {
  if (typeof json !== "object") return typeof json;
  return Object.fromEntries(Object.entries(json).map(([name, value]) => [name, kindsOf(value)]));
}

Deno.test("the page shows every operation with its fields and answers, and every link has a target", async () => {
  for (const url of urls) {
    const { api, operations } = await describedBy(url);
    const { text, headers } = await call(`${url}/docs`);
    assert.equal(headers.get("Content-Type"), "text/html; charset=utf-8");
    assert.match(text, new RegExp(`^<!DOCTYPE html>\\s*<html lang="en">[^]*<h1>${api.info.title}`));
    for (const { name, path, method, described } of operations) {
      const [card = ""] = text.split(`<article class="card" id="${described.operationId}"`)[1]
        ?.split("</article>") ?? [];
      assert.ok(card.includes(`>${method.toUpperCase()}</span><code>${path}</code>`), name);
      const [body] = Object.values<Json>(described.requestBody?.content ?? {});
      const named = body?.schema.$ref?.split("/").at(-1);
      const schema = named === undefined ? body?.schema : api.components.schemas[named];
      const fields = [
        ...(described.parameters ?? []).map(({ name }: Json) => name),
        ...Object.keys(schema?.properties ?? {}),
      ];
      for (const field of fields) assert.ok(card.includes(`<code>${field}</code>`), field);
      for (const status of Object.keys(described.responses)) {
        assert.match(card, new RegExp(`<summary><b class="\\w+">${status}</b>`));
      }
    }
    const targets = [...text.matchAll(/href="#([^"]+)"/g)].map(([, id = ""]) => id);
    assert.ok(targets.length > operations.length);
    for (const id of targets) assert.equal(text.split(` id="${id}"`).length, 2, id);
  }
});

Deno.test("the page runs no script, loads nothing, and can't be framed", async () => {
  for (const url of urls) {
    const { text, headers } = await call(`${url}/docs`);
    const [, style = ""] = /<style>([^]*?)<\/style>/.exec(text) ?? [];
    const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(style));
    assert.deepEqual(headers.get("Content-Security-Policy")?.split("; "), [
      "default-src 'none'",
      `style-src 'sha256-${new Uint8Array(hash).toBase64()}'`,
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
    ]);
    assert.equal(headers.get("X-Content-Type-Options"), "nosniff");
    // The policy would block style attributes and handlers silently.
    assert.doesNotMatch(text, /<script|<link|<img|<iframe|\sstyle=|\son\w+=|url\(|@import/);
    assert.doesNotMatch(text, /="[^"]*:\/\//); // examples contain urls, but no attribute does
  }
});
