// The same request again, and other requests with the same key.
import assert from "node:assert/strict";
import { assertError } from "../support/api.ts";
import {
  age,
  cancel,
  join,
  joined,
  startMatchmaking,
  ticket,
  untilPublished,
} from "../support/matchmaking.ts";
import { uniqueName } from "../support/databases.ts";

Deno.test("M-102: the same key gets the same ticket as it stands, and with other attributes a conflict", async () => {
  await using service = await startMatchmaking();
  const wish = { key: "evening", attributes: { region: "eu", level: 3 } };
  const first = await join(service, "ann", wish);
  const sameInOtherOrder = { key: "evening", attributes: { level: 3, region: "eu" } };
  assert.deepEqual((await join(service, "ann", sameInOtherOrder)).json, first.json);
  for (const attributes of [{ region: "us", level: 3 }, {}, { region: "eu", level: "3" }]) {
    const other = await join(service, "ann", { key: "evening", attributes });
    assertError(other, 409, "IDEMPOTENCY_KEY_CONFLICT");
  }
  const { json: { ticket_id: id } } = first;
  await cancel(service, "ann", id);
  const after = await join(service, "ann", wish);
  assert.deepEqual([after.json.ticket_id, after.json.status], [id, "CANCELLED"]);
  const otherKey = await joined(service, "ann", { ...wish, key: "night" });
  await age(service, otherKey);
  const late = await join(service, "ann", { ...wish, key: "night" });
  assert.deepEqual([late.json.ticket_id, late.json.status], [otherKey, "EXPIRED"]);
  assert.equal((await untilPublished(service, 1)).length, 1);
});

Deno.test("M-102: a second key is refused while the user waits in this mode, and accepted in another or afterwards", async () => {
  await using service = await startMatchmaking();
  const id = await joined(service, "ann", { key: "one" });
  assertError(
    await join(service, "ann", { key: "two" }),
    409,
    "MATCHMAKING_ALREADY_QUEUED",
    "the user waits in this mode already",
  );
  await joined(service, "ann", { key: "two", mode: "rank" });
  await cancel(service, "ann", id);
  const second = await joined(service, "ann", { key: "two" });
  assert.notEqual(second, id);
  await age(service, second);
  assert.notEqual(await joined(service, "ann", { key: "three" }), second);
});

Deno.test("M-102: joins of one user at once make one ticket, with one key or with many", async () => {
  await using service = await startMatchmaking({ MATCHMAKING_WORKER_ENABLED: "false" });
  const keys = Array.from({ length: 40 }, (_, n) => `key-${n % 4}`);
  const answers = await Promise.all(keys.map((key) => join(service, "ann", { key })));
  const made = answers.filter(({ status }) => status === 200);
  assert.equal(new Set(made.map(({ json }) => json.ticket_id)).size, 1);
  assert.equal(made.length, 10, "those with the key that was first");
  for (const refused of answers.filter(({ status }) => status !== 200)) {
    assertError(refused, 409, "MATCHMAKING_ALREADY_QUEUED");
  }
  assert.equal(await service.redis("ZCARD", "mm:{casual}:queue"), 1);
});

Deno.test("as many tickets of a user wait as the setting allows", async () => {
  await using service = await startMatchmaking({
    MATCHMAKING_TICKETS_PER_USER: "2",
    MATCHMAKING_WORKER_ENABLED: "false",
  });
  const first = await joined(service, "ann");
  await joined(service, "ann");
  assertError(await join(service, "ann"), 409, "MATCHMAKING_ALREADY_QUEUED");
  await cancel(service, "ann", first);
  assert.equal(await service.redis("ZCARD", "mm:{casual}:queue"), 1, "it has left the queue");
  await joined(service, "ann");
});

Deno.test("users and keys whose texts would be the same when joined are kept apart", async () => {
  await using service = await startMatchmaking({ MATCHMAKING_WORKER_ENABLED: "false" });
  const pairs: [user: string, key: string][] = [
    ["x:y", "z"],
    ["x", "y:z"],
    ["x%3Ay", "z"],
    ["x", "y%3Az"],
    ["X:Y", "z"],
    ["x:y:z", "z"],
    ["{x}", "y"],
    ["x}:of:y", "z"],
  ];
  const made: [user: string, id: string][] = [];
  for (const [user, key] of pairs) {
    const answer = await join(service, user, { key });
    if (answer.status === 409) assert.equal(user, "x", answer.text); // it waits with another key
    else made.push([user, answer.json.ticket_id]);
  }
  assert.equal(made.length, pairs.length - 1);
  assert.equal(new Set(made.map(([, id]) => id)).size, made.length);
  for (const [user, id] of made) {
    assert.equal((await ticket(service, user, id)).json.status, "QUEUED", user);
  }
});

Deno.test("a key is remembered for its time, and the ticket for longer", async () => {
  await using service = await startMatchmaking({
    MATCHMAKING_IDEMPOTENCY_TTL: "500ms",
    MATCHMAKING_TICKET_TTL: "30s",
    MATCHMAKING_RESULT_TTL: "20s",
  });
  const user = uniqueName("user");
  const id = await joined(service, user, { key: "k" });
  const keptMs = Number(await service.redis("PTTL", `mm:{casual}:ticket:${id}`));
  assert.ok(keptMs > 45_000 && keptMs <= 50_000, `${keptMs} ms`);
  const idemp = `mm:{casual}:idemp:${user}:k`;
  assert.ok(Number(await service.redis("PTTL", idemp)) <= 500);
  assert.equal((await cancel(service, user, id)).json.status, "CANCELLED");
  await service.redis("DEL", idemp); // its time is over
  assert.notEqual(await joined(service, user, { key: "k" }), id);
  assert.ok(Number(await service.redis("PTTL", `mm:{casual}:ticket:${id}`)) > 40_000);
});
