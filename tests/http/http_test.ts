// The HTTP behaviour of the entitlement service besides the changes themselves.
import assert from "node:assert/strict";
import {
  type Answer,
  assertError,
  call,
  grant,
  list,
  post,
  revoke,
  someFields,
} from "../support/api.ts";
import { type Entitlement, startEntitlement } from "../support/entitlement.ts";
import { describedBy, type Json } from "./described.ts";
import { validatorOf } from "../fuzz/openapi.ts";
import { natsUrl, readStream } from "../support/streams.ts";
import { until } from "../../tools/servers/wait.ts";

let kenri: Entitlement;
let url: string;

Deno.test.beforeAll(async () => {
  kenri = await startEntitlement();
  url = kenri.url;
});
Deno.test.afterAll(() => kenri.close());

const newUser = () => ({ user_id: crypto.randomUUID() });

Deno.test("an unknown path is not found, whatever the method", async () => {
  const paths = ["/", "/v1", "/v1/entitlements/grants/", "/v1/users//entitlements", "/V1/users/a"];
  for (const path of [...paths, "/v1/users/a/b/entitlements", "/favicon.ico"]) {
    assertError(await call(url + path), 404, "NOT_FOUND");
  }
  assertError(await call(`${url}/v1`, { method: "POST", body: "x" }), 404, "NOT_FOUND");
  assert.equal((await call(`${url}/v1`, { method: "HEAD" })).status, 404);
});

Deno.test("an unsupported method is refused, with the methods that the path supports", async () => {
  const allowed = {
    "/v1/entitlements/grants": "POST",
    "/v1/entitlements/revokes": "POST",
    "/v1/users/ann/entitlements": "GET, HEAD",
    "/livez": "GET, HEAD",
    "/readyz": "GET, HEAD",
    "/metrics": "GET, HEAD",
    "/openapi.json": "GET, HEAD",
    "/docs": "GET, HEAD",
  };
  for (const [path, allow] of Object.entries(allowed)) {
    for (const method of ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"]) {
      if (allow.includes(method)) continue;
      const answer = await call(url + path, { method });
      assertError(answer, 405, "METHOD_NOT_ALLOWED");
      assert.equal(answer.headers.get("Allow"), allow);
    }
  }
});

Deno.test("HEAD answers like GET, without the body", async () => {
  const plain = ["/livez", "/readyz", "/metrics", "/openapi.json", "/docs"];
  for (const path of [...plain, "/v1/users/ann/entitlements"]) {
    const [get, head] = [await call(url + path), await call(url + path, { method: "HEAD" })];
    assert.deepEqual([head.status, head.text], [200, ""]);
    assert.equal(head.headers.get("Content-Type"), get.headers.get("Content-Type"));
  }
  const refused = await call(`${url}/v1/entitlements/grants`, { method: "HEAD" });
  assert.deepEqual([refused.status, refused.headers.get("Allow")], [405, "POST"]);
});

Deno.test("a body of 16 KiB is accepted, and one byte more is refused", async () => {
  const sized = (bytes: number) => {
    const body = JSON.stringify({ ...someFields, ...newUser(), padding: "" });
    return body.replace(/"}$/, `${"x".repeat(bytes - body.length)}"}`);
  };
  assert.equal(sized(16_384).length, 16_384);
  assert.equal((await post(url, "grants", sized(16_384), "fits")).status, 200);
  const tooLong = await post(url, "grants", sized(16_385), "does-not-fit");
  assertError(tooLong, 413, "PAYLOAD_TOO_LARGE", "request body is over 16 KiB");
});

Deno.test("only JSON in UTF-8 is accepted", async () => {
  const types = [
    "application/json",
    "Application/JSON;charset=UTF-8",
    'application/json; charset="utf-8"',
  ];
  for (const type of types) {
    const answer = await post(url, "grants", { ...someFields, ...newUser() }, crypto.randomUUID(), {
      "Content-Type": type,
    });
    assert.equal(answer.status, 200, type);
  }
  const others = ["text/plain", "application/json; charset=latin1", "application/jsonp", "json"];
  for (
    const type of [...others, "multipart/form-data; boundary=x", "application/json, text/plain"]
  ) {
    const headers = { "Content-Type": type };
    const answer = await post(url, "grants", someFields, crypto.randomUUID(), headers);
    assertError(answer, 415, "UNSUPPORTED_MEDIA_TYPE", "Content-Type must be application/json");
  }
});

const w3c = (traceId: string) => `00-${traceId}-b7ad6b7169203331-01`;
const traceId = "0af7651916cd43dd8448eb211c80319c";

Deno.test("the trace id of a request reaches its event, and a request without one gets one", async () => {
  const cases = [
    { given: { "X-Trace-Id": "order-17" }, trace: /^order-17$/, parent: /^$/ },
    { given: { traceparent: w3c(traceId) }, trace: traceId, parent: w3c(traceId) },
    {
      given: { "X-Trace-Id": "order-18", traceparent: w3c(traceId) },
      trace: "order-18",
      parent: w3c(traceId),
    },
    { given: { "X-Trace-Id": traceId }, trace: traceId, parent: new RegExp(`^00-${traceId}-`) },
    { given: {}, trace: /^[0-9a-f]{32}$/, parent: /^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/ },
    { given: { traceparent: w3c("0".repeat(32)) }, trace: /^[0-9a-f]{32}$/, parent: /^00-/ },
    {
      given: { traceparent: "junk", "X-Trace-Id": "a b" },
      trace: /^[0-9a-f]{32}$/,
      parent: /^00-/,
    },
  ];
  for (const { given, trace, parent } of cases) {
    const user = newUser();
    const key = crypto.randomUUID();
    const fields = { ...someFields, ...user };
    const answer = await post(url, "grants", fields, key, given as Record<string, string>);
    assert.equal(answer.status, 200);
    const answered = answer.headers.get("X-Trace-Id") ?? "";
    assert.match(answered, new RegExp(trace));
    const headers = await eventHeaders(`${user.user_id}:book`);
    assert.equal(headers.get("trace_id"), answered);
    assert.match(headers.get("traceparent"), new RegExp(parent));
  }
});

async function eventHeaders(aggregateKey: string) {
  const find = async () =>
    (await readStream(natsUrl, kenri.stream))
      .find(({ header }) => header.get("aggregate_key") === aggregateKey);
  await until("its event is in the stream", async () => await find() !== undefined);
  const event = await find();
  assert.ok(event);
  return event.header;
}

Deno.test("the API description is OpenAPI 3.1, and contains everything that it refers to", async () => {
  const { api, operations } = await describedBy(url);
  assert.equal(api.openapi, "3.1.0");
  assert.ok(api.info.title && api.info.version);
  assert.deepEqual(Object.keys(api.paths).sort(), [
    "/docs",
    "/livez",
    "/metrics",
    "/openapi.json",
    "/readyz",
    "/v1/entitlements/grants",
    "/v1/entitlements/reservations",
    "/v1/entitlements/reservations/{reservation_id}",
    "/v1/entitlements/revokes",
    "/v1/points/grants",
    "/v1/points/reservations",
    "/v1/points/reservations/{reservation_id}",
    "/v1/points/spends",
    "/v1/users/{user_id}/entitlements",
    "/v1/users/{user_id}/points",
    "/v1/users/{user_id}/points/reservations",
    "/v1/users/{user_id}/points/transactions",
  ]);
  for (const { path, described } of operations) {
    const inPath = (described.parameters ?? []).filter((given: Json) => given.in === "path");
    const named = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
    assert.deepEqual(inPath.map(({ name }: Json) => name), named);
    for (const [status, answer] of Object.entries<Json>(described.responses)) {
      assert.match(status, /^[2-5]\d\d$/);
      assert.ok(answer.description && answer.content, `${path} ${status}`);
    }
  }
  for (const [, ref = ""] of JSON.stringify(api).matchAll(/"\$ref":"([^"]+)"/g)) {
    assert.ok(ref.startsWith("#/components/schemas/"));
    assert.ok(api.components.schemas[ref.split("/").at(-1) as string], ref);
  }
});

Deno.test("every answer matches the API description", async () => {
  const { api } = await describedBy(url);
  const user = newUser();
  const fields = { ...someFields, ...user };
  const grants = ["/v1/entitlements/grants", "post"] as const;
  const lists = ["/v1/users/{user_id}/entitlements", "get"] as const;
  const xml = { "Content-Type": "text/xml" };
  const answers: (readonly [string, string, Answer])[] = [
    [...grants, await post(url, "grants", fields, "described-1")],
    [...grants, await post(url, "grants", fields, "described-1")],
    [...grants, await grant(url, user)],
    [...grants, await post(url, "grants", {}, "described-2")],
    [...grants, await post(url, "grants", "x".repeat(20_000), "described-3")],
    [...grants, await post(url, "grants", fields, "k", xml)],
    ["/v1/entitlements/revokes", "post", await revoke(url, user)],
    [...lists, await list(url, user.user_id)],
    [...lists, await list(url, " ")],
    ["/livez", "get", await call(`${url}/livez`)],
    ["/readyz", "get", await call(`${url}/readyz`)],
    ["/openapi.json", "get", await call(`${url}/openapi.json`)],
  ];
  const seen = new Set(answers.map(([, , { status }]) => status));
  assert.deepEqual(seen, new Set([200, 409, 400, 413, 415]));
  for (const [path, method, { status, headers, json }] of answers) {
    const described = api.paths[path][method].responses[status];
    assert.ok(described, `${method} ${path} ${status}`);
    const schema = described.content[headers.get("Content-Type") ?? ""].schema;
    validatorOf(api, schema).parse(json);
  }
});
