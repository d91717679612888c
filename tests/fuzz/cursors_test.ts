// A caller may send any cursor. On every described route that takes one, the cursor is a position or
// is refused.
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import fc from "fast-check";
import { call } from "../support/api.ts";
import { anyText, anyTime } from "./fuzz.ts";
import { type Route, routesOf } from "./openapi.ts";
import { goodRequest } from "./requests.ts";
import { startService } from "../../tools/servers/service_process.ts";
import { orderSettings, senderToken } from "../support/orders.ts";
import { startStack } from "../support/stack.ts";

const id = "00000000-0000-7000-8000-000000000000";
const time = "2026-01-02T03:04:05.678901Z";

const written: unknown[] = [
  ...["\0", "a\0", "\ud800", "x\udfff", ""].flatMap((text) => [
    [text, "x"],
    ["x", text],
    [text],
    [time, text],
    [time, id, text],
  ]),
  ...[[time, id], [time, id, time], [id], ["1"], ["9".repeat(18)], ["9".repeat(40)]],
  ...[[7], [-1], [0.5], [2 ** 53], [1, 2], [null], [[]], [{}], [], {}, "\0", 7, null, {
    0: "\0",
    1: "x",
    length: 2,
  }],
  ...fc.sample(fc.array(fc.oneof(anyText, anyTime, fc.constant(id)), { maxLength: 3 }), 60),
];

const cursors = written.map((value) => Buffer.from(JSON.stringify(value)).toString("base64url"));

Deno.test("no cursor makes a route fail, whatever texts, times and ids are in it", async () => {
  await using sender = await startService("sender", { SENDER_TOKEN: senderToken });
  await using stack = await startStack({ notification: orderSettings(sender) });
  const { entitlement, notification } = stack;
  for (const { url, log } of [entitlement.service, notification]) {
    const routes = (await routesOf(url)).filter(takesCursor);
    assert.ok(routes.length >= 3, `${routes.length} routes`);
    for (const route of routes) {
      for (const cursor of cursors) {
        const { path, method, headers, body } = withCursor(route, cursor);
        const answer = await call(url + path, { method, headers, ...(body ? { body } : {}) });
        const text = Buffer.from(cursor, "base64url").toString();
        assert.ok(answer.status < 500, `${route.name} ${text}: ${answer.text}`);
      }
    }
    assert.deepEqual(log.filter(({ level }) => level === "error"), []);
  }
});

function takesCursor({ parameters, body }: Route): boolean {
  return parameters.some(({ name }) => name === "cursor") ||
    body?.properties?.["cursor"] !== undefined;
}

function withCursor(route: Route, cursor: string) {
  const [request] = fc.sample(goodRequest(route), 1);
  assert.ok(request);
  if (!route.body) {
    const [path = "", query = ""] = request.path.split("?");
    const asked = new URLSearchParams(query);
    asked.set("cursor", cursor);
    return { ...request, path: `${path}?${asked}`, body: undefined };
  }
  return { ...request, body: JSON.stringify({ ...JSON.parse(`${request.body}`), cursor }) };
}
