// One request to the outside and what comes back: bounded in time and in memory, whatever the receiver
// does, and never made twice.
import assert from "node:assert/strict";
import { type Behaves, startReceiver } from "../../tools/receiver/receiver.ts";
import { until } from "../../tools/servers/wait.ts";
import { codeOf, sendInside } from "./sending.ts";

Deno.test("the request arrives as it was given, and the answer comes back as it was made", async () => {
  await using receiver = await startReceiver();
  receiver.behave({ status: 201, headers: { "X-Answer": "yes", "Set-Cookie": "a" }, body: "done" });
  const outcome = await sendInside(`${receiver.url}/a/b?c=d%20e#f`);
  assert.deepEqual(outcome, {
    status: 201,
    headers: { "content-length": "4", "connection": "close", "x-answer": "yes", "set-cookie": "a" },
    body: "done",
  });
  const [request] = receiver.received;
  assert.equal(request?.method, "POST");
  assert.equal(request.path, "/a/b?c=d%20e");
  assert.equal(request.body, '{"a":"é"}');
  assert.deepEqual(Object.fromEntries(request.headers), {
    "connection": "close",
    "content-length": "10",
    "content-type": "application/json",
    "host": `127.0.0.1:${receiver.port}`,
    "user-agent": "Kenri",
    "webhook-id": "an id",
  });
});

Deno.test("of the body the first 4 KiB are kept, without half a character at their end", async () => {
  await using receiver = await startReceiver();
  const cases: [string, number][] = [["a".repeat(4_095), 4_095], ["a".repeat(9_000), 4_096]];
  for (const [body, length] of [...cases, [`a${"é".repeat(5_000)}`, 2_048] as const]) {
    receiver.behave({ body });
    const outcome = await sendInside(receiver.url);
    assert.equal("body" in outcome && outcome.body.length, length);
    assert.ok("body" in outcome && body.startsWith(outcome.body));
  }
});

const raw = (...lines: string[]): Behaves => ({ raw: lines.join("\r\n") });
const early = Array.from({ length: 20 }, () => "HTTP/1.1 103 Early\r\n");

// What the receiver does, and what comes of it.
const behaviours: [does: string, behaviour: Behaves, code: string][] = [
  ["hangs", "hang", "TIMEOUT"],
  ["hangs after the head", "hang after head", "TIMEOUT"],
  ["sends a body without end, byte by byte", "slow body", "TIMEOUT"],
  ["is slow", { status: 200, delayMs: 10_000 }, "TIMEOUT"],
  ["closes", "close", "CONNECTION_FAILED"],
  ["closes in the head", "close in head", "CONNECTION_FAILED"],
  ["closes in the body", "close in body", "CONNECTION_FAILED"],
  ["resets", "reset", "CONNECTION_FAILED"],
  ["resets in the body", "reset in body", "CONNECTION_FAILED"],
  ["sends a head without end", "endless head", "CONNECTION_FAILED"],
  ["sends a wrong length", "wrong length", "CONNECTION_FAILED"],
  [
    "sends two lengths",
    raw("HTTP/1.1 200 OK", "Content-Length: 1", "Content-Length: 2", "", "ab"),
    "CONNECTION_FAILED",
  ],
  ["speaks no HTTP", "broken head", "CONNECTION_FAILED"],
  [
    "sends a broken chunk",
    raw("HTTP/1.1 200 OK", "Transfer-Encoding: chunked", "", "zz", ""),
    "CONNECTION_FAILED",
  ],
  [
    "switches the protocol",
    raw("HTTP/1.1 101 Switch", "Connection: upgrade", "Upgrade: x", "", ""),
    "CONNECTION_FAILED",
  ],
  ["sends a fast body without end", "endless body", "200"],
  ["sends a huge body", "huge body", "200"],
  ["ends the body with the connection", raw("HTTP/1.1 200 OK", "", "until the end"), "200"],
  ["sends many early answers", raw(...early, "HTTP/1.1 204 No", "", ""), "204"],
  ["redirects", { status: 302, headers: { Location: "http://127.0.0.1/" } }, "302"],
  ["is overloaded", 503, "503"],
];

for (const [does, behaviour, code] of behaviours) {
  Deno.test(`a receiver that ${does} gives ${code} in time, and gets one request`, async () => {
    await using receiver = await startReceiver();
    receiver.behave(behaviour);
    const from = performance.now();
    const timeout_ms = code === "TIMEOUT" ? 400 : 5_000;
    const outcome = await sendInside(receiver.url, { timeout_ms });
    assert.equal(codeOf(outcome), code, JSON.stringify(outcome).slice(0, 200));
    assert.ok(performance.now() - from < 5_000);
    if ("body" in outcome) assert.ok(outcome.body.length <= 4_096);
    await until("the connection is closed", () => receiver.open === 0);
    assert.equal(receiver.received.length, 1);
    assert.equal(receiver.connections, 1);
  });
}

Deno.test("the time limit also covers the look-up of the name and the beginning of TLS", async () => {
  await using receiver = await startReceiver();
  const url = `https://127.0.0.1:${receiver.port}/`;
  const cases = [
    () =>
      sendInside("http://a.test/", { timeout_ms: 200 }, { resolve: () => new Promise(() => {}) }),
    () => sendInside(url, { timeout_ms: 200 }),
  ];
  for (const attempt of cases) {
    const from = performance.now();
    assert.equal(codeOf(await attempt()), "TIMEOUT");
    assert.ok(performance.now() - from < 5_000);
  }
  assert.equal(receiver.received.length, 0);
});

Deno.test("a refused connection and a name without an address have reasons of their own", async () => {
  await using receiver = await startReceiver();
  await receiver.stop();
  assert.equal(codeOf(await sendInside(receiver.url)), "CONNECTION_FAILED");
  assert.equal(codeOf(await sendInside("http://no-such-host.invalid/")), "DNS_FAILED");
  const resolve = () => Promise.resolve([]);
  assert.equal(codeOf(await sendInside("http://a.test/", {}, { resolve })), "DNS_FAILED");
});

Deno.test("the next address of a name is tried only if nothing was sent to the one before", async () => {
  await using receiver = await startReceiver();
  const url = `http://a.test:${receiver.port}/`;
  const resolve = () => Promise.resolve(["127.0.0.2", "127.0.0.1"]); // nobody listens on the first
  assert.equal(codeOf(await sendInside(url, {}, { resolve })), "200");
  assert.equal(receiver.received[0]?.headers.get("host"), `a.test:${receiver.port}`);
  receiver.behave("close");
  const twice = () => Promise.resolve(["127.0.0.1", "127.0.0.1"]);
  assert.equal(codeOf(await sendInside(url, {}, { resolve: twice })), "CONNECTION_FAILED");
  assert.equal(receiver.received.length, 2);
});

Deno.test("no message repeats the body or a header of the request or of the answer", async () => {
  await using receiver = await startReceiver();
  const secret = "s3cr3t";
  const request = { headers: { "x-secret": secret }, body: secret, timeout_ms: 300 };
  const wrong = [
    raw(`${secret} broken`, "", ""),
    raw("HTTP/1.1 200 OK", `${secret}\u0001: ${secret}`, "", ""),
  ];
  for (const behaviour of [...wrong, "hang" as const]) {
    receiver.behave(behaviour);
    const outcome = await sendInside(`${receiver.url}/${secret}?${secret}`, request);
    assert.ok("reason_code" in outcome);
    assert.doesNotMatch(JSON.stringify(outcome), /s3cr3t/);
  }
});
