import assert from "node:assert/strict";
import { until } from "../servers/wait.ts";
import type { Misbehaviour } from "./misbehave.ts";
import { type Behaves, type Receiver, startReceiver } from "./receiver.ts";

Deno.test("a receiver keeps each request whole, and answers several on one connection", async () => {
  await using receiver = await startReceiver();
  const [body, part] = ['{"name":"ä€"}', "x".repeat(100_000)];
  const head = (length: number) =>
    `POST /hook HTTP/1.1\r\nHost: x\r\nContent-Length: ${length}\r\n\r\n`;
  const first = head(new TextEncoder().encode(body).length) + body;
  const chunked = "POST /chunked HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" +
    `186A0\r\n${part}\r\n0\r\n\r\n`;
  const { text } = await exchange(receiver, first + chunked, 2);
  assert.equal(text.match(/HTTP\/1\.1 200 /g)?.length, 2);
  const [whole, long] = receiver.received;
  assert.deepEqual([whole?.method, whole?.path, whole?.body], ["POST", "/hook", body]);
  assert.deepEqual([long?.path, long?.body], ["/chunked", part]);
  assert.equal(receiver.connections, 1);
});

Deno.test("behaviours follow one another, the last one stays, and a path may have its own", async () => {
  await using receiver = await startReceiver();
  const statuses = async (path: string, count: number) => {
    const all: number[] = [];
    for (let i = 0; i < count; i++) {
      const answer = await fetch(receiver.url + path, { method: "POST", body: `${i}` });
      all.push(answer.status);
      await answer.body?.cancel();
    }
    return all;
  };
  receiver.behave(500, { status: 429, headers: { "Retry-After": "7" } }, 201);
  receiver.behaveAt("/gone", ({ body }) => body === "0" ? 204 : 410);
  assert.deepEqual(await statuses("/", 4), [500, 429, 201, 201]);
  assert.deepEqual(await statuses("/gone", 3), [204, 410, 410]);
  assert.equal(receiver.arrived("/gone").length, 3);
});

const shown: Record<Misbehaviour, (seen: Seen) => boolean> = {
  "hang": ({ text, isClosed }) => text === "" && !isClosed,
  "hang after head": ({ text, isClosed }) => text.endsWith("\r\n\r\n") && !isClosed,
  "close": ({ text, isClosed }) => text === "" && isClosed,
  "close in head": ({ text, isClosed }) => text.endsWith("Content-Le") && isClosed,
  "close in body": ({ text, isClosed }) => text.endsWith("\r\n\r\n12345") && isClosed,
  "reset": ({ error }) => /reset/.test(error),
  "reset in body": ({ error }) => /reset/.test(error),
  "endless head": ({ text }) => text.length > 1_048_576 && !text.includes("\r\n\r\n"),
  "endless body": ({ text }) => text.length > 1_048_576,
  "slow body": ({ text }) => text.endsWith("1\r\nx\r\n"),
  "huge body": ({ text }) => text.length > 1_048_576 && text.includes("Content-Length: 67108864"),
  "wrong length": ({ text }) => text.includes("Content-Length: many"),
  "broken head": ({ text }) => text === "This is not HTTP\r\n\r\n",
};

for (const [misbehaviour, isShown] of Object.entries(shown)) {
  Deno.test(`a receiver can misbehave: ${misbehaviour}`, async () => {
    await using receiver = await startReceiver();
    receiver.behave(misbehaviour as Misbehaviour);
    const seen = await exchange(receiver, "POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}");
    assert.ok(isShown(seen), `${seen.text.slice(0, 200)} ${seen.isClosed} ${seen.error}`);
    assert.equal(receiver.received.length, 1);
    await until("it noticed that the client has left", () => receiver.open === 0);
  });
}

Deno.test("a receiver can stop and come back on its port", async () => {
  await using receiver = await startReceiver();
  const slow: Behaves = { delayMs: 60_000 };
  receiver.behave(slow, 200);
  const broken = assert.rejects(fetch(receiver.url));
  await receiver.until(1);
  await receiver.stop();
  await broken;
  await assert.rejects(fetch(receiver.url));
  await receiver.start();
  assert.equal(await (await fetch(receiver.url)).text(), "");
});

interface Seen {
  text: string;
  isClosed: boolean;
  error: string;
}

// Sends bytes as they are, and reads for a moment, or until as many answers are there as expected.
async function exchange(receiver: Receiver, request: string, answers = 0): Promise<Seen> {
  using connection = await Deno.connect({ hostname: "127.0.0.1", port: receiver.port });
  const seen: Seen = { text: "", isClosed: false, error: "" };
  const bytes = new TextEncoder().encode(request);
  for (let at = 0; at < bytes.length;) at += await connection.write(bytes.subarray(at));
  const buffer = new Uint8Array(65_536);
  const reading = (async () => {
    while (seen.text.length < 2 * 1_048_576) {
      const count = await connection.read(buffer);
      if (count === null) return void (seen.isClosed = true);
      seen.text += new TextDecoder().decode(buffer.subarray(0, count));
      if (answers > 0 && seen.text.split("HTTP/1.1").length > answers) return;
    }
  })().catch((error) => void (seen.error = String(error)));
  const enough = Promise.withResolvers<void>();
  const timer = setTimeout(enough.resolve, 300);
  await Promise.race([reading, enough.promise]);
  clearTimeout(timer);
  const snapshot = { ...seen };
  connection.close();
  await reading;
  return snapshot;
}
