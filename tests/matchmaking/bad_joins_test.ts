// What bad input gets: one shape of errors, and nothing is stored.
import assert from "node:assert/strict";
import { type Answer, assertError, call } from "../support/api.ts";
import {
  cancel,
  join,
  joined,
  type Matchmaking,
  startMatchmaking,
  ticket,
} from "../support/matchmaking.ts";

const code = "MATCHMAKING_BAD_REQUEST";

function post(
  { url }: Matchmaking,
  body: unknown,
  { mode = "casual", user = "ann" }: { mode?: string; user?: string | undefined } = {},
): Promise<Answer> {
  return call(`${url}/v1/matchmaking/queues/${mode}/tickets`, {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-User-Id": user },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
}

const good = { party_size: 1, attributes: {}, idempotency_key: "one" };
const nested = (depth: number): unknown => depth === 0 ? 1 : { deeper: nested(depth - 1) };

const badBodies: [what: string, body: unknown, message: RegExp][] = [
  ["no party size", { ...good, party_size: undefined }, /^party_size must be 1$/],
  ["a party of 2", { ...good, party_size: 2 }, /^party_size must be 1$/],
  ["a party of 0", { ...good, party_size: 0 }, /^party_size must be 1$/],
  ["a party of '1'", { ...good, party_size: "1" }, /^party_size must be 1$/],
  ["a party of 1.5", { ...good, party_size: 1.5 }, /^party_size must be 1$/],
  ["no key", { ...good, idempotency_key: undefined }, /^idempotency_key is required$/],
  ["a blank key", { ...good, idempotency_key: " " }, /^idempotency_key is required$/],
  ["a key that is a number", { ...good, idempotency_key: 7 }, /^idempotency_key must be a string$/],
  ["a long key", { ...good, idempotency_key: "k".repeat(256) }, /at most 255 characters$/],
  ["a key with a line", { ...good, idempotency_key: "a\nb" }, /must not have control characters$/],
  ["half a character", '{"party_size":1,"idempotency_key":"\\ud800"}', /well-formed Unicode$/],
  ["a list of attributes", { ...good, attributes: [] }, /^attributes must be an object$/],
  ["text for attributes", { ...good, attributes: "eu" }, /^attributes must be an object$/],
  ["null attributes", { ...good, attributes: null }, /^attributes must be an object$/],
  ["deep attributes", { ...good, attributes: nested(9) }, /nested more than 8 levels deep$/],
  ["deep lists", { ...good, attributes: { a: [[[[[[[[[]]]]]]]]] } }, /more than 8 levels deep$/],
  [
    "extremely deep attributes",
    `{"party_size":1,"idempotency_key":"k","attributes":{"a":${"[".repeat(7_000)}${
      "]".repeat(7_000)
    }}}`,
    /more than 8 levels deep$/,
  ],
  ["huge attributes", { ...good, attributes: { a: "x".repeat(4_089) } }, /at most 4096 bytes$/],
  ["huge in bytes", { ...good, attributes: { a: "é".repeat(2_045) } }, /at most 4096 bytes$/],
  ["a list", [good], /./],
  ["text", '"text"', /./],
  ["no JSON", "{", /./],
  ["nothing", "", /./],
];

Deno.test("a bad join is refused with a sentence that names the problem, and stores nothing", async () => {
  await using service = await startMatchmaking();
  for (const [what, body, message] of badBodies) {
    const answer = await post(service, body);
    assertError(answer, 400, code);
    assert.match(answer.json.message, message, what);
  }
  for (
    const mode of [
      "x",
      "casual2",
      "casual%20",
      "%63asual%00",
      "casual-",
      "ｃasual",
      "x".repeat(300),
    ]
  ) {
    const answer = await post(service, good, { mode });
    assertError(answer, 400, code);
    assert.match(answer.json.message, /^unsupported mode: .{1,64}$/s);
  }
  const keys = await service.redis("KEYS", "*") as string[];
  assert.deepEqual(keys.filter((key) => !key.endsWith(":events")), []); // the relay makes these
  const largest = { ...good, attributes: { a: "x".repeat(4_088) }, other: "ignored" };
  assert.equal((await post(service, largest)).status, 200);
  const deepest = { ...good, attributes: nested(8), idempotency_key: "k".repeat(255) };
  assert.equal((await post(service, deepest, { mode: "RaNk", user: "bob" })).status, 200);
});

Deno.test("a request without a proper user is refused, whatever it asks for", async () => {
  await using service = await startMatchmaking();
  const id = await joined(service, "ann");
  const url = `${service.url}/v1/matchmaking`;
  const keys = await service.redis("KEYS", "*:ticket:*");
  const users: [headers: Record<string, string>, message: string][] = [
    [{}, "X-User-Id is required"],
    [{ "X-User-Id": "" }, "X-User-Id must be visible ASCII characters"],
    [{ "X-User-Id": "a b" }, "X-User-Id must be visible ASCII characters"],
    [{ "X-User-Id": "caf\u00e9" }, "X-User-Id must be visible ASCII characters"],
    [{ "X-User-Id": "u".repeat(256) }, "X-User-Id must be visible ASCII characters"],
  ];
  for (const [headers, message] of users) {
    for (const method of ["GET", "DELETE"]) {
      assertError(await call(`${url}/tickets/${id}`, { method, headers }), 400, code, message);
    }
    const body = { method: "POST", body: JSON.stringify(good) };
    const json = { ...headers, "Content-Type": "application/json" };
    const answer = await call(`${url}/queues/casual/tickets`, { ...body, headers: json });
    assertError(answer, 400, code, message);
  }
  assert.deepEqual(await service.redis("KEYS", "*:ticket:*"), keys);
  assert.equal((await ticket(service, "u".repeat(255), id)).status, 403);
});

Deno.test("a ticket id that can't be one is not found, and asks Redis for nothing", async () => {
  await using service = await startMatchmaking({ MATCHMAKING_WORKER_ENABLED: "false" });
  const id = await joined(service, "ann");
  const keys = await service.redis("KEYS", "*:ticket:*");
  const bad = [
    "x",
    "casual",
    id.toUpperCase(),
    `${id}x`,
    id.slice(0, -1),
    id.replace("casual", "other"),
    id.replace("casual-", ""),
    `${id}%20`,
    `${id}%0a`,
    `${id}%00`,
    `..%2f${id}`,
    `casual}:x-${id.slice(7)}`,
    `${"x".repeat(3_000)}-${id.slice(7)}`,
    "%7bcasual%7d",
    "*",
  ];
  for (const one of bad) {
    for (const ask of [ticket, cancel]) {
      assertError(await ask(service, "ann", one), 404, "MATCHMAKING_TICKET_NOT_FOUND");
    }
  }
  assert.deepEqual(await service.redis("KEYS", "*:ticket:*"), keys);
});

Deno.test("a time to wait that is none is refused, and a good one is kept", async () => {
  await using service = await startMatchmaking({ MATCHMAKING_WORKER_ENABLED: "false" });
  const id = await joined(service, "ann");
  for (const wait of ["", "5", "s", "-1s", "61s", "1m", "1.5s", "100s", "1e1s", "٣s", "5s "]) {
    const answer = await ticket(service, "ann", id, `?wait=${encodeURIComponent(wait)}`);
    assertError(answer, 400, code, "wait must be from 0s to 60s");
  }
  const began = performance.now();
  assert.equal((await ticket(service, "ann", id, "?wait=1s")).json.status, "QUEUED");
  const tookMs = performance.now() - began;
  assert.ok(tookMs >= 950 && tookMs < 4_000, `${tookMs} ms`);
  assert.equal((await ticket(service, "ann", id, "?wait=0s")).status, 200);
});

Deno.test("thousands of joins of one user are refused from a limit on, and their memory is bounded", async () => {
  await using service = await startMatchmaking({ MATCHMAKING_WORKER_ENABLED: "false" });
  const attributes = { a: "x".repeat(4_000) };
  const rest = Array.from({ length: 2_300 }, (_, n) => n).values();
  const counts = new Map<number, number>();
  await Promise.all(Array.from({ length: 16 }, async () => {
    for (const n of rest) {
      // It gets 409 as well, because another may be waiting.
      const answer = await join(service, "ann", { key: `key-${n}`, attributes });
      counts.set(answer.status, (counts.get(answer.status) ?? 0) + 1);
      if (answer.status === 200) await cancel(service, "ann", answer.json.ticket_id);
      if (answer.status === 429) {
        assertError(answer, 429, "TOO_MANY_REQUESTS", "the user has joined this mode too often");
        const seconds = Number(answer.headers.get("Retry-After"));
        assert.ok(seconds > 600 && seconds <= 660, `${seconds} s`);
      }
    }
  }));
  const made = counts.get(200) ?? 0;
  assert.ok(made > 100, `${[...counts]}`);
  await service.redis("SET", "mm:{casual}:joins:ann", "2000", "KEEPTTL");
  assertError(await join(service, "ann"), 429, "TOO_MANY_REQUESTS");
  assert.equal((await join(service, "ann", { mode: "rank" })).status, 200, "another mode");
  assert.equal((await join(service, "bob")).status, 200, "another user");
  const keys = await service.redis("KEYS", "mm:{casual}:ticket:*") as string[];
  assert.equal(keys.length, made + 1);
  for (const key of keys.slice(0, 20)) {
    const bytes = Number(await service.redis("MEMORY", "USAGE", key));
    const isWaiting = await service.redis("HGET", key, "status") === "QUEUED";
    assert.ok(isWaiting || bytes < 1_500, `${bytes} bytes of a ticket that has ended`);
    assert.ok(Number(await service.redis("PTTL", key)) > 0);
  }
});
