// G-106: a service that fails is left alone for a while, and nothing is carried out twice. And what
// passes to the services behind, and back.
import assert from "node:assert/strict";
import type { Behaves, Received } from "../../tools/receiver/receiver.ts";
import { assertError } from "../support/api.ts";
import { type Behind, json, startBehind } from "../support/behind.ts";
import { logIn } from "../support/gateway.ts";

const queue = "/v1/matchmaking/queues/casual/tickets";
const ticketPath = "/v1/matchmaking/tickets/casual-1";
const ticket = { ticket_id: "casual-1", status: "QUEUED", expires_at: "2026-01-02T03:04:05Z" };
const join = { party_size: 1, attributes: { region: "eu" }, idempotency_key: "k-1" };

function unsafe(behind: Behind, method: string, path: string, body?: unknown, more = {}) {
  return behind.ask(path, {
    method,
    headers: { ...behind.csrf, "Content-Type": "application/json", ...more },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

Deno.test("G-106: after five failures a service is not asked, and callers get 503 at once", async () => {
  await using behind = await startBehind();
  const { user, ask, entitlement } = behind;
  const path = `/v1/users/${user.userId}/entitlements`;
  entitlement.behave(500);
  for (let i = 0; i < 5; i++) assertError(await ask(path), 502, "ENTITLEMENT_BAD_GATEWAY");
  const asked = entitlement.received.length;
  assert.equal(asked, 10, "each of the five was tried twice");
  const from = performance.now();
  for (let i = 0; i < 20; i++) {
    const refused = await ask(path);
    assertError(refused, 503, "ENTITLEMENT_UNAVAILABLE");
    const seconds = Number(refused.headers.get("Retry-After"));
    assert.ok(seconds > 25 && seconds <= 30, `${seconds} s`);
  }
  assert.ok(performance.now() - from < 1_000, "at once");
  assert.equal(entitlement.received.length, asked);
  const metrics = await (await fetch(`${behind.gateway.url}/metrics`)).text();
  assert.match(metrics, /^kenri_breaker_open\{service="entitlement"\} 1$/m);
  assert.match(metrics, /^kenri_breaker_open\{service="account"\} 0$/m);
  assert.equal((await ask(`/v1/users/${user.userId}`)).status, 200, "the others are asked");
  const logged = behind.gateway.log.filter(({ message }) => /entitlement service/.test(message));
  assert.deepEqual(logged.map(({ message }) => message), [
    "The entitlement service fails: it answered 500",
  ]);
});

Deno.test("G-106: 4xx are answers, so they open no breaker", async () => {
  await using behind = await startBehind();
  const { ask, matchmaking } = behind;
  for (const status of [400, 403, 404, 409, 429]) {
    matchmaking.behave(json({ code: "MATCHMAKING_BAD_REQUEST", message: "no" }, status));
    for (let i = 0; i < 6; i++) {
      assertError(await ask(ticketPath), status, "MATCHMAKING_BAD_REQUEST");
    }
  }
  assert.equal(matchmaking.received.length, 30);
});

Deno.test("G-106: a change that may have been carried out is never sent again", async () => {
  await using behind = await startBehind();
  const { account, user } = behind;
  const path = `/v1/users/${user.userId}`;
  for (const behaves of ["close", "close in body", "reset", 500, 503, "hang"] as Behaves[]) {
    account.behaveAt(path, behaves, json({ code: "never", message: "asked" }, 400));
    const before = account.arrived(path).length;
    const { status } = await unsafe(behind, "PATCH", path, { locale: "en" });
    assert.ok(status === 502 || status === 504, `${behaves} ${status}`);
    assert.equal(account.arrived(path).length, before + 1, `${behaves}`);
    account.behaveAt(path, json({ user_id: user.userId }));
    assert.equal((await behind.ask(path)).status, 200); // closes the breaker
  }
});

Deno.test("G-106: changes use connections of their own, look-ups keep theirs", async () => {
  await using behind = await startBehind();
  const { matchmaking, ask } = behind;
  matchmaking.behave(json(ticket));
  for (let i = 0; i < 5; i++) await ask(ticketPath);
  assert.equal(matchmaking.connections, 1);
  for (let i = 0; i < 5; i++) assert.equal((await unsafe(behind, "POST", queue, join)).status, 200);
  assert.equal(matchmaking.connections, 6);
  assert.equal(matchmaking.open, 1);
  await ask(ticketPath);
  assert.equal(matchmaking.connections, 6);
});

Deno.test("G-106: a look-up is tried again on a new connection, and so is a join by its key", async () => {
  await using behind = await startBehind();
  const { matchmaking, ask } = behind;
  for (const behaves of ["close", "reset", 500, 503] as Behaves[]) {
    matchmaking.behave(behaves, json(ticket));
    const before = matchmaking.received.length;
    assert.equal((await ask(ticketPath)).status, 200, `${behaves}`);
    matchmaking.behave(behaves, json(ticket));
    assert.equal((await unsafe(behind, "POST", queue, join)).status, 200, `${behaves}`);
    matchmaking.behave(behaves, json(ticket));
    assert.equal((await unsafe(behind, "DELETE", ticketPath)).status, 200, `${behaves}`);
    const received = matchmaking.received.slice(before);
    assert.deepEqual(received.map(({ method }) => method), [
      ...["GET", "GET", "POST", "POST", "DELETE", "DELETE"],
    ]);
    assert.equal(received[2]?.body, received[3]?.body);
  }
});

Deno.test("a ticket's wait is added to the time of that one call, and is limited", async () => {
  await using behind = await startBehind();
  const { matchmaking, ask } = behind;
  matchmaking.behave({ ...json(ticket) as object, delayMs: 3_500 });
  assert.equal((await ask(`${ticketPath}?wait=2s`)).status, 200);
  assert.equal(matchmaking.received.length, 1);
  assert.equal(matchmaking.received[0]?.path, `${ticketPath}?wait=2s`);
  for (const wait of ["61s", "2", "2m", "-1s", "1.5s", ""]) {
    assertError(await ask(`${ticketPath}?wait=${wait}`), 400, "BAD_REQUEST");
  }
  assert.equal(matchmaking.received.length, 1);
});

Deno.test("only what belongs to a request passes, and only in the name of the session", async () => {
  const tokens = {
    GATEWAY_NOTIFICATION_TOKEN: "n".repeat(32),
    GATEWAY_MATCHMAKING_TOKEN: "m".repeat(32),
  };
  await using behind = await startBehind(tokens);
  const { notification, matchmaking, user, ask } = behind;
  notification.behave(json({ user_id: user.userId, notifications: [] }));
  const forged = {
    "X-User-Id": "0197f7a0-5f0c-7c3e-9b1d-2f4f3c1a9e57",
    "X-User-Roles": "ADMIN",
    "Authorization": "Bearer mine",
    "X-Forwarded-For": "10.0.0.1",
    "Idempotency-Key": "k",
  };
  const path = `/v1/users/${user.userId.toUpperCase()}/notifications?limit=5&cursor=a%26b&x=1`;
  assert.equal((await ask(path, { headers: forged })).status, 200);
  const names = ({ headers }: Received) => [...headers.keys()].toSorted();
  const [asked] = notification.received;
  assert.ok(asked);
  assert.equal(asked.path, `/v1/users/${user.userId}/notifications?limit=5&cursor=a%26b`);
  assert.deepEqual(names(asked), ["authorization", "content-length", "host", "x-user-id"]);
  assert.equal(asked.headers.get("X-User-Id"), user.userId);
  assert.equal(asked.headers.get("Authorization"), `Bearer ${tokens.GATEWAY_NOTIFICATION_TOKEN}`);
  matchmaking.behave({
    headers: {
      "Content-Type": "application/json",
      "ETag": '"1"',
      "Set-Cookie": "a=b",
      "X-Powered-By": "x",
      "Access-Control-Allow-Origin": "*",
    },
    body: JSON.stringify(ticket),
  });
  const joined = await unsafe(behind, "POST", queue, join, { ...forged, "If-Match": '"1"' });
  assert.deepEqual(joined.json, ticket);
  assert.equal(joined.headers.get("ETag"), '"1"');
  for (const name of ["X-Powered-By", "Access-Control-Allow-Origin"]) {
    assert.equal(joined.headers.get(name), null, name);
  }
  assert.equal(joined.headers.get("Set-Cookie")?.includes("a=b") ?? false, false);
  assert.equal(matchmaking.received[0]?.body, JSON.stringify(join));
  assert.equal(matchmaking.received[0]?.headers.get("X-User-Id"), user.userId);
});

Deno.test("the name of a ticket or of a queue is one part of the path behind", async () => {
  await using behind = await startBehind();
  const { ask, matchmaking } = behind;
  matchmaking.behave(json(ticket));
  const name = "..%2F..%2Fqueues%3Fx%23y";
  assert.equal((await ask(`/v1/matchmaking/tickets/${name}`)).status, 200);
  const joined = await unsafe(behind, "POST", `/v1/matchmaking/queues/${name}/tickets`, join);
  assert.equal(joined.status, 200);
  assert.deepEqual(matchmaking.received.map(({ path }) => path), [
    `/v1/matchmaking/tickets/${name}`,
    `/v1/matchmaking/queues/${name}/tickets`,
  ]);
  assertError(await ask("/v1/matchmaking/tickets/%2e%2e"), 404, "NOT_FOUND");
});

Deno.test("what is not the user's own is refused before anybody is asked", async () => {
  await using behind = await startBehind();
  const { entitlement, notification } = behind;
  const other = await logIn(behind.real);
  for (
    const [part, code] of [
      ["entitlements", "ENTITLEMENT_FORBIDDEN"],
      ["points", "ENTITLEMENT_FORBIDDEN"],
      ["notifications", "NOTIFICATION_FORBIDDEN"],
    ]
  ) {
    assertError(await behind.ask(`/v1/users/${other.userId}/${part}`), 403, `${code}`);
  }
  assert.equal(entitlement.received.length + notification.received.length, 0);
});

Deno.test("a body is limited and must be JSON, and refusals come back with their code", async () => {
  await using behind = await startBehind();
  const { matchmaking } = behind;
  const large = { ...join, attributes: { text: "x".repeat(17_000) } };
  assertError(await unsafe(behind, "POST", queue, large), 413, "PAYLOAD_TOO_LARGE");
  const text = { "Content-Type": "text/plain" };
  assertError(await unsafe(behind, "POST", queue, join, text), 415, "UNSUPPORTED_MEDIA_TYPE");
  assertError(await unsafe(behind, "POST", queue), 400, "BAD_REQUEST");
  assert.equal(matchmaking.received.length, 0);
  for (
    const [status, code] of [
      [400, "MATCHMAKING_BAD_REQUEST"],
      [403, "MATCHMAKING_TICKET_FORBIDDEN"],
      [404, "MATCHMAKING_TICKET_NOT_FOUND"],
      [409, "MATCHMAKING_ALREADY_QUEUED"],
      [409, "IDEMPOTENCY_KEY_CONFLICT"],
    ] as const
  ) {
    matchmaking.behave(json({ code, message: "no" }, status));
    assertError(await unsafe(behind, "POST", queue, join), status, code);
  }
  matchmaking.behave({
    ...json({ code: "FORBIDDEN", message: "this needs the scope secret:scope" }, 403) as object,
    headers: { "Content-Type": "application/json", "WWW-Authenticate": "Bearer" },
  });
  const refused = await unsafe(behind, "POST", queue, join);
  assertError(refused, 403, "MATCHMAKING_FORBIDDEN");
  assert.equal(refused.text.includes("secret:scope"), false);
  assert.equal(refused.headers.get("WWW-Authenticate"), null);
});

Deno.test("a service that is not configured is unavailable", async () => {
  await using behind = await startBehind({}, { isWithMatchmaking: false });
  const answer = await behind.ask(ticketPath);
  assertError(answer, 503, "MATCHMAKING_UNAVAILABLE");
  assert.ok(Number(answer.headers.get("Retry-After")) > 0);
});
