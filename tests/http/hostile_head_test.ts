// A misleading Host, target or path is refused, and pipelined requests are answered in order.
import assert from "node:assert/strict";
import { call, someFields } from "../support/api.ts";
import { type Entitlement, startEntitlement } from "../support/entitlement.ts";
import { assertRawError, changeHead, connectTo, contentLength, sendRaw } from "./raw_http.ts";

let kenri: Entitlement;
let url: string;

Deno.test.beforeAll(async () => {
  kenri = await startEntitlement();
  url = kenri.url;
});
Deno.test.afterAll(() => kenri.close());

Deno.test("a Host that can't be part of a url causes no error in the service", async () => {
  await using debugged = await startEntitlement({ ENTITLEMENT_DEBUG_ENABLED: "true" });
  const form = "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 1\r\n\r\na";
  for (const host of ['a b"<>', "[", ":", "a:b:c", "%", "x".repeat(5_000), "<script>", "@"]) {
    for (
      const path of ["/livez", "/console", "/console/dead-letters/send-back?id=a", "/docs", "/x"]
    ) {
      const get = `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n`;
      const post = `POST ${path} HTTP/1.1\r\nHost: ${host}\r\nOrigin: ${host}\r\n${form}`;
      for (const request of [`${get}\r\n`, post]) {
        const answer = await sendRaw(debugged.url, request);
        assert.ok(answer && answer.status < 500, `${request}: ${answer?.status} ${answer?.text}`);
        assert.ok(!answer.text.includes("<script>"), answer.text);
      }
    }
  }
});

Deno.test("neither the Host nor the form of the target can choose another route than the path", async () => {
  const path = "/v1/users/ann/entitlements";
  const refused = [
    ...["localhost/livez?", "localhost/livez#", "localhost\\livez?", "localhost?", "u@localhost"]
      .map((host) => `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`),
    `GET ${path} HTTP/1.1\r\nHost: localhost\r\nHost: localhost/livez?\r\n\r\n`,
    `GET ${path} HTTP/1.1\r\nHost: \r\n\r\n`,
    `GET ${path} HTTP/1.0\r\n\r\n`,
    "GET http://other/livez HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n",
  ];
  for (const request of refused) {
    const answer = await sendRaw(url, request);
    assert.equal(answer?.status, 400, `${request}: ${answer?.text}`);
  }
  for (const host of ["localhost", "LOCALHOST:8080", "[::1]:8080", "127.0.0.1"]) {
    const answer = await sendRaw(url, `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
    assert.equal(answer?.status, 200, `${host}: ${answer?.text}`);
  }
  assert.equal((await sendRaw(url, "GET /livez HTTP/1.0\r\n\r\n"))?.status, 200);
});

Deno.test("a service without credentials refuses names of the local network and of the internet", async () => {
  for (const host of ["intranet", "kenri", "evil.example", "10.0.0.1", "0.0.0.0"]) {
    const answer = await sendRaw(
      url,
      `GET /v1/users/ann/entitlements HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
    );
    assertRawError(answer, 403, "FORBIDDEN");
  }
});

Deno.test("a part of the path that is not valid text is refused", async () => {
  const bad = {
    "%00": "user_id must not have control characters",
    "a%0Ab": "user_id must not have control characters",
    "%20": "user_id is required",
    "%zz": "user_id must be percent-encoded UTF-8",
    "%": "user_id must be percent-encoded UTF-8",
    "%ff": "user_id must be percent-encoded UTF-8",
    "%ed%a0%80": "user_id must be percent-encoded UTF-8",
    ["x".repeat(256)]: "user_id must have at most 255 characters",
    ["%F0%9F%8E%AB".repeat(256)]: "user_id must have at most 255 characters",
  };
  for (const [name, message] of Object.entries(bad)) {
    const answer = await sendRaw(
      url,
      `GET /v1/users/${name}/entitlements HTTP/1.1\r\nHost: localhost\r\n\r\n`,
    );
    assertRawError(answer, 400, "BAD_REQUEST");
    assert.equal(JSON.parse(answer?.text ?? "").message, message);
  }
  const emoji = await call(`${url}/v1/users/${"%F0%9F%8E%AB".repeat(255)}/entitlements`);
  assert.deepEqual([emoji.status, emoji.json.user_id], [200, "🎫".repeat(255)]);
});

Deno.test("pipelined requests are answered in their order, including bad ones", async () => {
  using connection = await connectTo(url);
  const request = (key: string, body: string) =>
    changeHead(`Idempotency-Key: ${key}`, contentLength(body)) + body;
  const fields = JSON.stringify({ ...someFields, user_id: crypto.randomUUID() });
  const requests = ["a", "b"].map((key) => request(`pipelined-${key}`, fields));
  await connection.send([...requests, request("bad", "{"), requests[0]].join(""));
  const answers = [];
  for (let i = 0; i < 4; i++) answers.push(await connection.answer());
  assert.deepEqual(answers.map((answer) => answer?.status), [200, 409, 400, 200]);
  assert.equal(answers[3]?.text, answers[0]?.text);
});
