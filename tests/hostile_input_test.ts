// Bad input gets a clear error in the one shape, nothing of it is stored, and the service goes on.
import assert from "node:assert/strict";
import { assertError, call, grant, post, someFields } from "./api.ts";
import { type Entitlement, type RowCounts, startEntitlement } from "./entitlement.ts";
import { changeHead, connectTo, type RawAnswer, sendRaw } from "./raw_http.ts";

let kenri: Entitlement;
let url: string;

Deno.test.beforeAll(async () => {
  kenri = await startEntitlement();
  url = kenri.url;
});
Deno.test.afterAll(() => kenri.close());

// Each test of a bad input runs within this.
async function leavesNoTrace(work: () => Promise<void>): Promise<void> {
  const before: RowCounts = await kenri.counts();
  await work();
  assert.deepEqual(await kenri.counts(), before);
  assert.equal((await grant(url, { user_id: crypto.randomUUID() })).status, 200);
  assert.deepEqual(kenri.service.log.filter(({ level }) => level === "error"), []);
}

function assertRawError(answer: RawAnswer | undefined, status: number, code: string): void {
  assert.ok(answer, "closed without an answer");
  assert.equal(answer.status, status, answer.text);
  const body = JSON.parse(answer.text);
  assert.deepEqual(Object.keys(body), ["code", "message"]);
  assert.equal(body.code, code);
}

const length = (body: string) => `Content-Length: ${new TextEncoder().encode(body).length}`;
const goodBody = JSON.stringify(someFields);

Deno.test("a field that is missing, blank, too long, of another type or not storable is named", async () => {
  const bad: [unknown, string][] = [
    [undefined, "is required"],
    [null, "is required"],
    ["", "is required"],
    [" \t\n", "is required"],
    ["\u3000\u00a0", "is required"],
    ["x".repeat(256), "must have at most 255 characters"],
    ["🎫".repeat(256), "must have at most 255 characters"],
    ...[0, 1.5, true, [], ["ann"], {}, { toString: "ann" }].map((
      value,
    ): [unknown, string] => [value, "must be a string"]),
    ["ann\u0000", "must not have control characters"],
    ["\u001b[2J", "must not have control characters"],
    ["ann\u007f", "must not have control characters"],
    ["ann\u0085", "must not have control characters"],
    ["\ud800", "must be well-formed Unicode"],
    ["ann\udc00bob", "must be well-formed Unicode"],
  ];
  await leavesNoTrace(async () => {
    for (const action of ["grants", "revokes"] as const) {
      for (const field of Object.keys(someFields)) {
        for (const [value, problem] of bad) {
          const answer = await post(url, action, { ...someFields, [field]: value }, "bad-field");
          assertError(answer, 400, "BAD_REQUEST", `${field} ${problem}`);
        }
      }
    }
    const answer = await post(url, "grants", { user_id: 1 }, "bad-field");
    assertError(
      answer,
      400,
      "BAD_REQUEST",
      "user_id must be a string; stock_keeping_unit is required; reason is required; " +
        "purchase_id is required",
    );
  });
});

Deno.test("255 characters are taken, also when each is an emoji", async () => {
  const fields = Object.fromEntries(Object.keys(someFields).map((key) => [key, "🎫".repeat(255)]));
  assert.equal((await post(url, "grants", fields, "k".repeat(255))).status, 200);
});

Deno.test("a bad Idempotency-Key is refused", async () => {
  await leavesNoTrace(async () => {
    const required = "Idempotency-Key is required";
    const invalid = "Idempotency-Key must be 1 to 255 visible ASCII characters";
    for (
      const [key, message] of [[undefined, required], ["", required], ["  ", required]] as const
    ) {
      assertError(await post(url, "grants", someFields, key), 400, "BAD_REQUEST", message);
    }
    for (const key of ["a b", "k".repeat(256), "\u00e9", "a\tb"]) {
      assertError(await post(url, "grants", someFields, key), 400, "BAD_REQUEST", invalid);
    }
    const twice = changeHead("Idempotency-Key: a", "Idempotency-Key: a", length(goodBody));
    assertRawError(await sendRaw(url, twice, goodBody), 400, "BAD_REQUEST");
    const utf8 = changeHead("Idempotency-Key: 日本", length(goodBody));
    assertRawError(await sendRaw(url, utf8, goodBody), 400, "BAD_REQUEST");
  });
});

Deno.test("a body that is no JSON object is refused", async () => {
  const required = "request body is required";
  const invalid = "request body is invalid";
  const bodies = [
    "null",
    "1",
    '"text"',
    "[]",
    "[{}]",
    "true",
    "{",
    "{}}",
    "{'a':1}",
    "x",
  ];
  await leavesNoTrace(async () => {
    assertError(await post(url, "grants", "", "no-body"), 400, "BAD_REQUEST", required);
    assertRawError(await sendRaw(url, changeHead("Idempotency-Key: k")), 400, "BAD_REQUEST");
    for (const body of [...bodies, " ", "NaN", '{"user_id":"\u0001"}', goodBody.slice(0, -1)]) {
      assertError(await post(url, "grants", body, "bad-body"), 400, "BAD_REQUEST", invalid);
    }
    const deep = ["[".repeat(16_000), '{"a":'.repeat(3_000), "[".repeat(8_000) + "]".repeat(8_000)];
    for (const body of deep) {
      assertError(await post(url, "grants", body, "deep"), 400, "BAD_REQUEST", invalid);
    }
  });
});

Deno.test("bytes that are no UTF-8 are refused, not replaced", async () => {
  const broken = [[0xff], [0xc3], [0xed, 0xa0, 0x80], [0xc0, 0x80], [0xf4, 0x90, 0x80, 0x80]];
  await leavesNoTrace(async () => {
    for (const bytes of broken) {
      const [begin = "", end = ""] = goodBody.split("ann");
      const encoder = new TextEncoder();
      const body = [...encoder.encode(begin), ...bytes, ...encoder.encode(end)];
      const head = changeHead("Idempotency-Key: utf8", `Content-Length: ${body.length}`);
      assertRawError(await sendRaw(url, head, new Uint8Array(body)), 400, "BAD_REQUEST");
    }
  });
});

Deno.test("names that mean something to JavaScript are fields like any other", async () => {
  await leavesNoTrace(async () => {
    const inherited = `{"__proto__":${goodBody},"constructor":{"prototype":${goodBody}}}`;
    const answer = await post(url, "grants", inherited, "proto");
    assert.match(answer.json.message, /^user_id is required; stock_keeping_unit is required/);
  });
  const user = { user_id: crypto.randomUUID() };
  const extra = JSON.stringify({ ...someFields, ...user }).replace("{", '{"__proto__":{"a":1},');
  assert.equal((await post(url, "grants", extra, "proto-extra")).status, 200);
});

Deno.test("of a member that stands twice the last one counts, also for the key's identity", async () => {
  const [a, b] = [crypto.randomUUID(), crypto.randomUUID()];
  const twice = goodBody.replace('"ann"', `"${a}","user_id":"${b}"`);
  const first = await post(url, "grants", twice, "twice");
  assert.deepEqual([first.status, first.json.user_id], [200, b]);
  const again = await post(url, "grants", { ...someFields, user_id: b }, "twice");
  assert.equal(again.text, first.text);
});

Deno.test("a huge body is refused, whether its length is told or not", async () => {
  await leavesNoTrace(async () => {
    const huge = " ".repeat(3_000_000);
    assertError(await post(url, "grants", huge, "huge"), 413, "PAYLOAD_TOO_LARGE");
    const told = changeHead("Idempotency-Key: told", "Content-Length: 99999999999");
    assertRawError(await sendRaw(url, told), 413, "PAYLOAD_TOO_LARGE");
    const chunk = `8000\r\n${" ".repeat(0x8000)}\r\n`;
    const chunked = changeHead("Idempotency-Key: chunked", "Transfer-Encoding: chunked");
    assertRawError(await sendRaw(url, chunked, chunk.repeat(50)), 413, "PAYLOAD_TOO_LARGE");
  });
});

Deno.test("a body that ends before its length is refused, and one that is cut off changes nothing", async () => {
  await leavesNoTrace(async () => {
    const head = changeHead("Idempotency-Key: half", "Content-Length: 1000");
    using ended = await connectTo(url);
    await ended.send(head + goodBody);
    await ended.end();
    assertRawError(await ended.answer(), 400, "BAD_REQUEST");
    for (let i = 0; i < 50; i++) {
      using gone = await connectTo(url);
      await gone.send(head + goodBody);
    }
  });
});

Deno.test("what is not HTTP is refused by the server itself, and the next client is served", async () => {
  const line = "GET /livez HTTP/1.1\r\nHost: localhost\r\n";
  const random = crypto.getRandomValues(new Uint8Array(50_000));
  const garbage: (string | Uint8Array)[] = [
    random,
    "\u0016\u0003\u0001\u0002\u0000\u0001\u0000\u0001", // the begin of TLS
    "GET\r\n\r\n",
    "GET /livez HTTP/9.9\r\n\r\n",
    `${line}X: a\u0000b\r\n\r\n`,
    `${line}no colon\r\n\r\n`,
    `${line}X: ${"a".repeat(2_000_000)}\r\n\r\n`,
    `GET /${"a".repeat(2_000_000)} HTTP/1.1\r\n\r\n`,
    line + "X: a\r\n".repeat(1_000) + "\r\n",
    changeHead("Idempotency-Key: a", "Content-Length: -1"),
    changeHead("Idempotency-Key: a", "Content-Length: 1", "Content-Length: 2"),
    changeHead("Idempotency-Key: a", "Content-Length: 1", "Transfer-Encoding: chunked"),
    changeHead("Idempotency-Key: a", "Transfer-Encoding: chunked") + "xyz\r\n",
  ];
  await leavesNoTrace(async () => {
    for (const data of garbage) {
      const answer = await sendRaw(url, data);
      assert.ok(answer === undefined || answer.status === 400, `${data.slice(0, 80)}`);
    }
  });
});

Deno.test("a Host that no url can have is no failure, of the console neither", async () => {
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

Deno.test("no Host and no form of the target chooses another route than the path", async () => {
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

Deno.test("without credentials a name of the network is answered no more than one of the internet", async () => {
  for (const host of ["intranet", "kenri", "evil.example", "10.0.0.1", "0.0.0.0"]) {
    const answer = await sendRaw(
      url,
      `GET /v1/users/ann/entitlements HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
    );
    assertRawError(answer, 403, "FORBIDDEN");
  }
});

Deno.test("a name in the path that is no text is refused", async () => {
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

Deno.test("requests sent without waiting are answered in their order, bad ones too", async () => {
  using connection = await connectTo(url);
  const request = (key: string, body: string) =>
    changeHead(`Idempotency-Key: ${key}`, length(body)) + body;
  const fields = JSON.stringify({ ...someFields, user_id: crypto.randomUUID() });
  const requests = ["a", "b"].map((key) => request(`pipelined-${key}`, fields));
  await connection.send([...requests, request("bad", "{"), requests[0]].join(""));
  const answers = [];
  for (let i = 0; i < 4; i++) answers.push(await connection.answer());
  assert.deepEqual(answers.map((answer) => answer?.status), [200, 409, 400, 200]);
  assert.equal(answers[3]?.text, answers[0]?.text);
});
