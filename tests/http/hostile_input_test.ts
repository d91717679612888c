// Bad input gets a clear error, nothing of it is stored, and the service keeps running.
import assert from "node:assert/strict";
import { assertError, grant, post, someFields } from "../support/api.ts";
import { type Entitlement, type RowCounts, startEntitlement } from "../support/entitlement.ts";
import {
  assertRawError,
  changeHead,
  connectTo,
  contentLength,
  type RawAnswer,
  sendRaw,
} from "./raw_http.ts";

let kenri: Entitlement;
let url: string;

Deno.test.beforeAll(async () => {
  kenri = await startEntitlement();
  url = kenri.url;
});
Deno.test.afterAll(() => kenri.close());

// The work stores nothing and logs no error, and afterwards a change succeeds.
async function leavesNoTrace(work: () => Promise<void>): Promise<void> {
  const before: RowCounts = await kenri.counts();
  await work();
  assert.deepEqual(await kenri.counts(), before);
  assert.equal((await grant(url, { user_id: crypto.randomUUID() })).status, 200);
  assert.deepEqual(kenri.service.log.filter(({ level }) => level === "error"), []);
}

const goodBody = JSON.stringify(someFields);

Deno.test("the error names a field that is missing, blank, too long, of another type or not storable", async () => {
  const bad: [unknown, string][] = [
    [undefined, "is required"],
    [null, "is required"],
    ["", "is required"],
    [" \t\n", "is required"],
    ["\u3000\u00a0", "is required"],
    ["x".repeat(256), "must have at most 255 characters"],
    ["🎫".repeat(256), "must have at most 255 characters"],
    ...[0, 1.5, true, [], ["ann"], {}, { toString: "ann" }]
      .map((value): [unknown, string] => [value, "must be a string"]),
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

Deno.test("255 characters are accepted, even if each is an emoji", async () => {
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
    const twice = changeHead("Idempotency-Key: a", "Idempotency-Key: a", contentLength(goodBody));
    assertRawError(await sendRaw(url, twice, goodBody), 400, "BAD_REQUEST");
    const utf8 = changeHead("Idempotency-Key: 日本", contentLength(goodBody));
    assertRawError(await sendRaw(url, utf8, goodBody), 400, "BAD_REQUEST");
  });
});

Deno.test("a body that is not a JSON object is refused", async () => {
  const required = "request body is required";
  const invalid = "request body is invalid";
  const bodies = ["null", "1", '"text"', "[]", "[{}]", "true", "{", "{}}", "{'a':1}", "x"];
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

Deno.test("bytes that are not UTF-8 are refused, not replaced", async () => {
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

Deno.test("field names with a meaning in JavaScript are fields like any other", async () => {
  await leavesNoTrace(async () => {
    const inherited = `{"__proto__":${goodBody},"constructor":{"prototype":${goodBody}}}`;
    const answer = await post(url, "grants", inherited, "proto");
    assert.match(answer.json.message, /^user_id is required; stock_keeping_unit is required/);
  });
  const user = { user_id: crypto.randomUUID() };
  const extra = JSON.stringify({ ...someFields, ...user }).replace("{", '{"__proto__":{"a":1},');
  assert.equal((await post(url, "grants", extra, "proto-extra")).status, 200);
});

Deno.test("if a body contains a member twice the last one counts, also for the idempotency key", async () => {
  const [a, b] = [crypto.randomUUID(), crypto.randomUUID()];
  const twice = goodBody.replace('"ann"', `"${a}","user_id":"${b}"`);
  const first = await post(url, "grants", twice, "twice");
  assert.deepEqual([first.status, first.json.user_id], [200, b]);
  const again = await post(url, "grants", { ...someFields, user_id: b }, "twice");
  assert.equal(again.text, first.text);
});

Deno.test("a huge body is refused with and without a Content-Length", async () => {
  await leavesNoTrace(async () => {
    const huge = " ".repeat(3_000_000);
    assertError(await post(url, "grants", huge, "huge"), 413, "PAYLOAD_TOO_LARGE");
    const announced = changeHead("Idempotency-Key: announced", "Content-Length: 99999999999");
    assertRawError(await sendRaw(url, announced), 413, "PAYLOAD_TOO_LARGE");
    const chunk = `8000\r\n${" ".repeat(0x8000)}\r\n`;
    const chunked = changeHead("Idempotency-Key: chunked", "Transfer-Encoding: chunked");
    assertRawError(await sendRaw(url, chunked, chunk.repeat(50)), 413, "PAYLOAD_TOO_LARGE");
  });
});

Deno.test("a body that is shorter than announced is refused, and one that is cut off changes nothing", async () => {
  await leavesNoTrace(async () => {
    const head = changeHead("Idempotency-Key: half", "Content-Length: 1000");
    let answer: RawAnswer | undefined;
    for (let i = 0; i < 10 && !answer; i++) { // sometimes the runtime closes the connection first
      using ended = await connectTo(url);
      await ended.send(head + goodBody);
      await ended.end();
      answer = await ended.answer();
    }
    assertRawError(answer, 400, "BAD_REQUEST");
    for (let i = 0; i < 50; i++) {
      using gone = await connectTo(url);
      await gone.send(head + goodBody);
    }
  });
});

Deno.test("bytes that are not HTTP are refused by the server itself, and the next client is served", async () => {
  const line = "GET /livez HTTP/1.1\r\nHost: localhost\r\n";
  const random = crypto.getRandomValues(new Uint8Array(50_000));
  const garbage: (string | Uint8Array)[] = [
    random,
    "\u0016\u0003\u0001\u0002\u0000\u0001\u0000\u0001", // the beginning of a TLS handshake
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
