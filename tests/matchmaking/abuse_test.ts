// What a hostile user, or a caller that was taken over, can do to matchmaking and its Redis.
import assert from "node:assert/strict";
import { type Answer, assertError, call } from "../support/api.ts";
import { cancel, join, joined, startMatchmaking, ticket } from "../support/matchmaking.ts";
import { ownRedis, redisCommand } from "../support/redis.ts";

const mostJoins = 2_000;

Deno.test("a user who joins thousands of times is refused at the limit, and nobody else", async () => {
  await using redis = await ownRedis();
  await using service = await startMatchmaking({
    MATCHMAKING_TICKETS_PER_USER: "100",
    REDIS_URL: redis.url,
  });
  const memory = async () =>
    Number(/^used_memory:(\d+)/m.exec(`${await redisCommand(redis.url, "INFO", "memory")}`)?.[1]);
  const before = await memory();
  const attributes = { text: "x".repeat(4_000) };
  const joinAndCancel = async () => {
    const answer = await join(service, "ann", { attributes });
    if (answer.status === 200) await cancel(service, "ann", answer.json.ticket_id);
    return answer;
  };
  const answers: Answer[] = [];
  while (answers.length < mostJoins + 100) {
    answers.push(...await Promise.all(Array.from({ length: 50 }, joinAndCancel)));
  }
  const refused = answers.filter(({ status }) => status !== 200);
  assert.equal(answers.length - refused.length, mostJoins);
  for (const answer of refused) {
    assertError(answer, 429, "TOO_MANY_REQUESTS");
    assert.match(answer.headers.get("Retry-After") ?? "", /^[1-9]\d{0,2}$/);
  }
  assert.ok(await memory() - before < 16_000_000, `${await memory() - before} bytes`);
  const { text } = await call(`${service.url}/metrics`);
  assert.match(text, new RegExp(`^kenri_refused_total.*joins_per_user.* ${refused.length}$`, "m"));
  assert.equal((await join(service, "ann", { mode: "rank" })).status, 200);
  const bob = await joined(service, "bob");
  assert.equal((await ticket(service, "bob", bob)).json.status, "QUEUED");
});

const deep = (levels: number): unknown => levels === 0 ? {} : { a: deep(levels - 1) };
const user = { "X-User-Id": "ann" };
const good = { party_size: 1, attributes: {}, idempotency_key: "k" };
const hostile: [what: string, mode: string, headers: Record<string, string>, body: unknown][] = [
  ["an unknown mode", "x", user, good],
  ["a mode with the end of a hash tag", "casual}:queue", user, good],
  ["a mode that leads to other keys", "..%2Fcasual", user, good],
  ["the name of a property", "__proto__", user, good],
  ["no user", "casual", {}, good],
  ["a user of several words", "casual", { "X-User-Id": "ann bob" }, good],
  ["a user of 256 characters", "casual", { "X-User-Id": "a".repeat(256) }, good],
  ["two in a party", "casual", user, { ...good, party_size: 2 }],
  ["a party as text", "casual", user, { ...good, party_size: "1" }],
  ["attributes as a list", "casual", user, { ...good, attributes: [] }],
  ["attributes as text", "casual", user, { ...good, attributes: "x" }],
  ["attributes of 4 KiB and more", "casual", user, {
    ...good,
    attributes: { a: "x".repeat(4_096) },
  }],
  ["attributes of 9 levels", "casual", user, { ...good, attributes: deep(9) }],
  ["no key", "casual", user, { ...good, idempotency_key: undefined }],
  ["a key of 256 characters", "casual", user, { ...good, idempotency_key: "k".repeat(256) }],
  ["a key with a control character", "casual", user, { ...good, idempotency_key: "k\u0000" }],
  ["no object", "casual", user, []],
];

Deno.test("input that is not a join is refused, and leaves nothing in Redis", async () => {
  await using service = await startMatchmaking();
  const keys = async () => (await service.redis("KEYS", "*") as string[]).sort();
  const before = await keys();
  for (const [what, mode, headers, body] of hostile) {
    const url = `${service.url}/v1/matchmaking/queues/${mode}/tickets`;
    const answer = await call(url, {
      method: "POST",
      headers: { ...headers, "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
    assertError(answer, 400, "MATCHMAKING_BAD_REQUEST");
    assert.deepEqual(await keys(), before, what);
  }
  for (
    const id of [
      "x",
      "casual-x",
      "casual",
      `x-${crypto.randomUUID()}`,
      `casual}-${crypto.randomUUID()}`,
    ]
  ) {
    for (const  of of[ticket, cancel]) {
      assertError(
        await of(service, "ann", encodeURIComponent(id)),
        404,
        "MATCHMAKING_TICKET_NOT_FOUND",
      );
    }
  }
  assert.deepEqual(await keys(), before);
});

Deno.test("whatever a user and a key are called, each user's ticket is a key of the mode and of nobody else", async () => {
  await using service = await startMatchmaking({ MATCHMAKING_WORKER_ENABLED: "false" });
  const names = [
    "a:b",
    "a",
    "}:x",
    "mm:{casual}:queue",
    "*",
    "%7D",
    "a%3Ab",
    "'; redis.call('FLUSHALL') --",
  ]
    .map((name) => name.replaceAll(" ", "_"));
  for (const name of names) {
    const id = await joined(service, name, { key: "b:c" });
    const again = await join(service, name, { key: "b:c" });
    assert.equal(again.json.ticket_id, id, name);
    for (const other of names.filter((other) => other !== name)) {
      assertError(await ticket(service, other, id), 403, "MATCHMAKING_TICKET_FORBIDDEN");
    }
  }
  for (const key of await service.redis("KEYS", "*") as string[]) {
    assert.match(key, /^mm:\{(casual|rank)\}:[^{}]*$/);
  }
  assert.equal(await service.redis("ZCARD", "mm:{casual}:queue"), names.length);
});
