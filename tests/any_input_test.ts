// Whatever is thrown at the API is answered in its shape, and only what was answered is stored.
import assert from "node:assert/strict";
import fc from "fast-check";
import { type Answer, call, grant, someFields } from "./api.ts";
import { type Entitlement, startEntitlement } from "./entitlement.ts";
import { connectTo } from "./raw_http.ts";

let kenri: Entitlement;
let url: string;

Deno.test.beforeAll(async () => {
  kenri = await startEntitlement();
  url = kenri.url;
});
Deno.test.afterAll(() => kenri.close());

const action = fc.constantFrom("grants", "revokes");

// Text that is often good, and often near to what is not.
const text = fc.oneof(
  fc.constantFrom("ann", "bob", "", " ", "\u0000", "\ud800", "🎫".repeat(255), "x".repeat(256)),
  fc.string({ unit: "binary", maxLength: 300 }),
  fc.string({ maxLength: 20 }),
);
const value = fc.oneof({ weight: 9, arbitrary: text }, { weight: 1, arbitrary: fc.jsonValue() });
const fields = fc.record(
  Object.fromEntries(Object.keys(someFields).map((name) => [name, value])),
  { requiredKeys: [] },
);
const body = fc.oneof(
  { weight: 6, arbitrary: fields.map((given) => JSON.stringify({ ...someFields, ...given })) },
  { weight: 2, arbitrary: fields.map((given) => JSON.stringify(given)) },
  { weight: 2, arbitrary: fc.json() },
  { weight: 1, arbitrary: fc.string({ unit: "binary", maxLength: 100 }) },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 200 }) },
  { weight: 1, arbitrary: fc.nat(40_000).map((length) => " ".repeat(length)) },
);

const visible = fc.string({
  unit: fc.integer({ min: 0x20, max: 0xff }).filter((code) => code !== 0x7f)
    .map((code) => String.fromCharCode(code)),
  maxLength: 300,
});
const key = fc.oneof({ weight: 4, arbitrary: fc.uuid() }, { weight: 1, arbitrary: visible });
const contentType = fc.oneof(
  { weight: 9, arbitrary: fc.constant("application/json") },
  { weight: 1, arbitrary: visible },
);
const headers = fc.record({
  "Idempotency-Key": key,
  "Content-Type": contentType,
  "X-Trace-Id": visible,
  "traceparent": visible,
  "Accept": visible,
  "Cookie": visible,
  "Authorization": visible,
  "X-Forwarded-For": visible,
}, { requiredKeys: ["Content-Type", "Idempotency-Key"] });

const request = fc.record({ action, body, headers });
type Request = typeof request extends fc.Arbitrary<infer Value> ? Value : never;

function send({ action, body, headers }: Request): Promise<Answer> {
  return call(`${url}/v1/entitlements/${action}`, {
    method: "POST",
    headers: headers as Record<string, string>,
    body: body as BodyInit,
  });
}

function assertShape({ status, text, json }: Answer): void {
  assert.ok([200, 400, 409, 413, 415].includes(status), `${status} ${text}`);
  const members = status === 200
    ? ["user_id", "stock_keeping_unit", "status", "version", "updated_at"]
    : ["code", "message"];
  assert.deepEqual(Object.keys(json), members);
}

Deno.test("any body and any headers are answered in the API's shape, and only answers are stored", async () => {
  const before = (await kenri.counts()).idempotency_keys;
  const stored = new Set<string>();
  const seen = new Set<number>();
  await fc.assert(
    fc.asyncProperty(fc.array(request, { minLength: 20, maxLength: 20 }), async (requests) => {
      const answers = await Promise.all(requests.map(send));
      answers.forEach((answer, i) => {
        assertShape(answer);
        seen.add(answer.status);
        const isStored = answer.status === 200 || /already/.test(answer.text);
        const key = requests[i]?.headers["Idempotency-Key"]?.trim() ?? "";
        if (isStored) stored.add(key);
      });
    }),
    { numRuns: 150, endOnFailure: true },
  );
  assert.deepEqual(seen, new Set([200, 400, 409, 413, 415]));
  assert.equal((await kenri.counts()).idempotency_keys, before + stored.size);
});

Deno.test("any bytes on the wire leave the service up and nothing stored", async () => {
  const before = await kenri.counts();
  const line = fc.constantFrom("POST /v1/entitlements/grants HTTP/1.1\r\n", "GET /v1/users/", "");
  const bytes = fc.uint8Array({ maxLength: 2_000 });
  await fc.assert(
    fc.asyncProperty(line, bytes, async (line, bytes) => {
      using connection = await connectTo(url);
      await connection.send(line);
      await connection.send(bytes);
      await connection.send("\r\n\r\n");
      await connection.end();
      const answer = await connection.answer();
      assert.ok(!answer || answer.status < 500, JSON.stringify(answer));
    }),
    { numRuns: 300, endOnFailure: true },
  );
  assert.deepEqual(await kenri.counts(), before);
  assert.equal((await grant(url, { user_id: crypto.randomUUID() })).status, 200);
});
