// Any bytes on a connection: HTTP is answered, anything else is refused or closed, no client waits
// without end, and nothing is stored.
import assert from "node:assert/strict";
import fc from "fast-check";
import { grant, someFields } from "../support/api.ts";
import { startEntitlement } from "../support/entitlement.ts";
import { freshPlace, startNotification } from "../support/notification.ts";
import { changeHead, connectTo, type RawAnswer } from "../http/raw_http.ts";
import { inTime } from "../../tools/servers/wait.ts";
import { fuzz, mutated } from "./fuzz.ts";

const atOnce = 20;
const encoder = new TextEncoder();

const body = JSON.stringify(someFields);
const requests = [
  changeHead("Idempotency-Key: k", `Content-Length: ${body.length}`) + body,
  changeHead("Idempotency-Key: k", "Transfer-Encoding: chunked") +
  `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
  "GET /v1/users/ann/entitlements HTTP/1.1\r\nHost: localhost\r\n\r\n",
  "DELETE /v1/points/reservations/00000000-0000-7000-8000-000000000000 HTTP/1.1\r\nHost: localhost\r\n\r\n",
  "GET /debug/notification/inbox/ann?limit=5 HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n\r\n",
  "GET /livez HTTP/1.1\r\nHost: localhost\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n",
  "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
];

const bytes: fc.Arbitrary<Uint8Array> = fc.oneof(
  {
    weight: 4,
    arbitrary: mutated(fc.constantFrom(...requests).map((text) => encoder.encode(text))),
  },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 2_000 }) },
  { weight: 1, arbitrary: fc.string({ unit: "binary-ascii", maxLength: 300 }).map(asHeader) },
);

function asHeader(text: string): Uint8Array {
  return encoder.encode(`GET /livez HTTP/1.1\r\nHost: localhost\r\n${text}\r\n\r\n`);
}

// These bytes end any request that the bytes before them began.
const padding = encoder.encode(`\r\n\r\n${" ".repeat(20_000)}`);

async function send(url: string, bytes: Uint8Array): Promise<RawAnswer | undefined> {
  using connection = await connectTo(url);
  await connection.send(bytes);
  await connection.send(padding);
  await connection.end();
  return await connection.answer();
}

async function sendAnything(url: string, runs: number): Promise<void> {
  await fuzz(
    fc.asyncProperty(fc.array(bytes, { minLength: atOnce, maxLength: atOnce }), async (batch) => {
      const answers = Promise.all(batch.map((bytes) => send(url, bytes)));
      for (const answer of await inTime("all are answered or let go", answers)) {
        assert.ok(!answer || answer.status < 500, JSON.stringify(answer));
      }
    }),
    runs,
  );
}

Deno.test("no bytes stop the entitlement service, and they make at most the change that they still encode", async () => {
  await using kenri = await startEntitlement();
  await sendAnything(kenri.url, 250);
  const { outbox_events } = await kenri.counts();
  const changes = await kenri.rows("select from entitlements");
  assert.equal(outbox_events, changes.length);
  assert.equal((await grant(kenri.url, { user_id: crypto.randomUUID() })).status, 200);
  assert.deepEqual(kenri.service.log.filter(({ level }) => level === "error"), []);
});

Deno.test("no bytes stop the notification service", async () => {
  await using place = await freshPlace();
  await using service = await startNotification(place, { NOTIFICATION_DEBUG_ENABLED: "true" });
  await sendAnything(service.url, 100);
  assert.equal(
    (await fetch(`${service.url}/livez`).then((answer) => answer.text())).length > 0,
    true,
  );
  assert.deepEqual(service.log.filter(({ level }) => level === "error"), []);
});
