// Matchmaking through the gateway: each answer of the service reaches the person whose session it is.
import assert from "node:assert/strict";
import type { Settings } from "../../tools/servers/service_process.ts";
import { until } from "../../tools/servers/wait.ts";
import { type Answer, assertError, call } from "../support/api.ts";
import { type Behind, json, startBehind } from "../support/behind.ts";
import { csrf, type LoggedIn, logIn } from "../support/gateway.ts";
import { type Matchmaking, startMatchmaking, ticket } from "../support/matchmaking.ts";
import { ownRedis } from "../support/redis.ts";

interface Place extends AsyncDisposable {
  behind: Behind;
  matchmaking: Matchmaking;
}

async function startPlace(settings: Settings = {}): Promise<Place> {
  await using parts = new AsyncDisposableStack();
  const matchmaking = parts.use(await startMatchmaking(settings));
  const behind = parts.use(await startBehind({ GATEWAY_MATCHMAKING_URL: matchmaking.url }));
  const moved = parts.move();
  return { behind, matchmaking, [Symbol.asyncDispose]: () => moved.disposeAsync() };
}

/** Requests of one person; `user` is that of the place unless another one is given. */
async function personAt({ behind }: Place, user: LoggedIn = behind.user) {
  const { gateway } = behind;
  const token = await csrf(gateway, user);
  const send = (method: string, path: string, body?: unknown): Promise<Answer> =>
    call(`${gateway.url}/v1/matchmaking${path}`, {
      method,
      headers: user.as({ ...token, "Content-Type": "application/json" }),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  const join = (mode: string, idempotency_key: string | undefined, more = {}) =>
    send("POST", `/queues/${mode}/tickets`, {
      ...{ party_size: 1, attributes: {}, idempotency_key },
      ...more,
    });
  return { user, send, join };
}

Deno.test("two people are matched with each other, and a wait ends at that moment", async () => {
  await using place = await startPlace();
  const ann = await personAt(place);
  const bob = await personAt(place, await logIn(place.behind.real));
  const { ticket_id, status, expires_at } = (await ann.join("casual", "a")).json;
  assert.equal(status, "QUEUED");
  assert.ok(Date.parse(expires_at) > Date.now());
  const from = performance.now();
  const waited = ann.send("GET", `/tickets/${ticket_id}?wait=25s`);
  const joined = (await bob.join("CASUAL", "b")).json;
  const [ofAnn, ofBob] = [
    await waited,
    await bob.send("GET", `/tickets/${joined.ticket_id}?wait=5s`),
  ]
    .map(({ json }) => json);
  assert.ok(performance.now() - from < 10_000);
  assert.deepEqual([ofAnn.status, ofBob.status], ["MATCHED", "MATCHED"]);
  assert.deepEqual(ofAnn.matched.peer_user_ids, [bob.user.userId]);
  assert.deepEqual(ofBob.matched.peer_user_ids, [ann.user.userId]);
  assert.equal(ofAnn.matched.match_id, ofBob.matched.match_id);
  const profile = await place.behind.ask(
    `/v1/users/${ann.user.userId}/profile?partial=true&ticket_id=${ticket_id}`,
  );
  assert.deepEqual(profile.json.matchmaking, ofAnn);
});

Deno.test("a wait that a person leaves takes no place at the service any more", async () => {
  await using place = await startPlace({ HTTP_REQUESTS_AT_ONCE: "2" });
  const { user, join } = await personAt(place);
  const { ticket_id } = (await join("casual", "a")).json;
  const path = `/v1/matchmaking/tickets/${ticket_id}?wait=60s`;
  const leave = new AbortController();
  const waits = [1, 2, 3].map(() => place.behind.ask(path, { signal: leave.signal }));
  const refused = await Promise.race(waits);
  assertError(refused, 502, "MATCHMAKING_BAD_GATEWAY"); // both places are taken
  leave.abort();
  await Promise.allSettled(waits);
  await until("there is a place", async () => {
    const answer = await ticket(place.matchmaking, user.userId, ticket_id, "?wait=1s");
    return answer.status === 200;
  });
});

Deno.test("a join that is not possible is refused with the code and the reason", async () => {
  await using place = await startPlace();
  const { join } = await personAt(place);
  const refused = async (answer: Promise<Answer>, reason: RegExp) => {
    assertError(await answer, 400, "MATCHMAKING_BAD_REQUEST");
    assert.match((await answer).json.message, reason);
  };
  await refused(join("chess", "a"), /^unsupported mode: chess$/);
  await refused(join("casual", "a", { party_size: 2 }), /^party_size must be 1$/);
  await refused(join("casual", undefined), /^idempotency_key is required$/);
  const { ticket_id } = (await join("Rank", "a")).json;
  assert.equal((await join("rank", "a")).json.ticket_id, ticket_id, "in any case of the mode");
  const other = await join("rank", "a", { attributes: { region: "eu" } });
  assertError(other, 409, "IDEMPOTENCY_KEY_CONFLICT");
  assertError(await join("rank", "b"), 409, "MATCHMAKING_ALREADY_QUEUED");
  assert.equal((await join("casual", "b")).status, 200, "another mode is another queue");
});

Deno.test("a ticket is cancelled any number of times, and only by its user", async () => {
  await using place = await startPlace();
  const ann = await personAt(place);
  const bob = await personAt(place, await logIn(place.behind.real));
  const { ticket_id } = (await ann.join("casual", "a")).json;
  for (const method of ["GET", "DELETE"]) {
    const foreign = await bob.send(method, `/tickets/${ticket_id}`);
    assertError(foreign, 403, "MATCHMAKING_TICKET_FORBIDDEN");
    const unknown = await ann.send(method, `/tickets/casual-${crypto.randomUUID()}`);
    assertError(unknown, 404, "MATCHMAKING_TICKET_NOT_FOUND");
  }
  for (let times = 0; times < 3; times++) {
    const { status, json } = await ann.send("DELETE", `/tickets/${ticket_id}`);
    assert.deepEqual([status, json.status], [200, "CANCELLED"]);
  }
  assert.equal((await ann.send("GET", `/tickets/${ticket_id}`)).json.status, "CANCELLED");
  assert.equal((await bob.join("casual", "b")).json.status, "QUEUED", "nobody is there");
});

Deno.test("a service that says that it is unavailable is believed, and asked again soon", async () => {
  await using redis = await ownRedis();
  await using place = await startPlace({ REDIS_URL: redis.url });
  const { join, send } = await personAt(place);
  const { ticket_id } = (await join("casual", "a")).json;
  await redis.stop();
  for (let i = 0; i < 6; i++) {
    const answer = await (i % 2 ? join("casual", "a") : send("GET", `/tickets/${ticket_id}`));
    assertError(answer, 503, "MATCHMAKING_UNAVAILABLE");
    const seconds = Number(answer.headers.get("Retry-After"));
    assert.ok(i < 5 ? seconds === 1 : seconds >= 1 && seconds <= 5, `${i}: ${seconds} s`);
  }
  await redis.start();
  await until("it is asked again", async () => (await join("casual", "a")).status === 200);
  assert.equal((await join("casual", "a")).json.ticket_id, ticket_id);
});

Deno.test("any other 503 is a failure without a word of the service behind", async () => {
  await using behind = await startBehind();
  const ticket = "/v1/matchmaking/tickets/casual-1";
  const secret = { code: "SERVICE_UNAVAILABLE", message: "10.0.0.7 does not answer" };
  behind.matchmaking.behave(json(secret, 503));
  const answer = await behind.ask(ticket);
  assertError(answer, 502, "MATCHMAKING_BAD_GATEWAY");
  assert.doesNotMatch(answer.text, /10\.0/);
  behind.matchmaking.behave({ status: 503, body: "MATCHMAKING_UNAVAILABLE" });
  assertError(await behind.ask(ticket), 502, "MATCHMAKING_BAD_GATEWAY");
});
