// G-105: the profile of a user from three services, whatever one of them does.
import assert from "node:assert/strict";
import type { Behaves, Receiver } from "../../tools/receiver/receiver.ts";
import { until } from "../../tools/servers/wait.ts";
import { assertError } from "../support/api.ts";
import { type Behind, json, startBehind } from "../support/behind.ts";
import { logIn, untilItKnows } from "../support/gateway.ts";

let behind: Behind;

Deno.test("G-105: a profile has what three services know, whatever one of them does", async (t) => {
  // The session is judged by what the gateway knows, also while the account service is stopped here.
  await using started = await startBehind({ GATEWAY_SESSION_STALENESS: "10m" });
  behind = started;
  await untilItKnows(behind.gateway, behind.user);
  await t.step("it has the account, the entitlements, and a ticket", isComplete);
  await t.step("that of another user is forbidden, and nobody is asked for it", isOnlyOnesOwn);
  await t.step(
    "a ticket_id leads to no other path, and partial is true or false",
    refusesBadQueries,
  );
  for (const name of names) {
    await t.step(`each bad answer of ${name} has a code of its own`, () => answersBadly(name));
    await t.step(`${name} is down, or slow`, () => isDownOrSlow(name));
  }
  await t.step("the services are asked at the same time", asksAtTheSameTime);
});

const names = ["account", "entitlement", "matchmaking"] as const;
type Name = typeof names[number];

const ticketId = "casual-0197f7a0-5f0c-7c3e-9b1d-2f4f3c1a9e57";
const ticket = {
  ticket_id: ticketId,
  status: "QUEUED",
  expires_at: "2026-01-02T03:04:05Z",
  matched: null,
};
const book = {
  stock_keeping_unit: "book",
  status: "ACTIVE",
  version: 1,
  updated_at: "2026-01-02T03:04:05.678901Z",
};

const profileOf = (userId: string) => `/v1/users/${userId}/profile`;
const pathAt: Record<Name, () => string> = {
  account: () => `/v1/users/${behind.user.userId}`,
  entitlement: () => `/v1/users/${behind.user.userId}/entitlements`,
  matchmaking: () => `/v1/matchmaking/tickets/${ticketId}`,
};
const good: Record<Name, () => Behaves> = {
  account: () => json({ ...accountAnswer(), a_new_field: 1 }),
  entitlement: () => json({ user_id: behind.user.userId, entitlements: [book] }),
  matchmaking: () => json(ticket),
};

const accountAnswer = () => ({
  user_id: behind.user.userId,
  display_name: "Ann",
  locale: null,
  status: "ACTIVE",
  roles: ["USER"],
  version: 1,
});

function allGood(): void {
  for (const name of names) behind[name].behaveAt(pathAt[name](), good[name]());
}

async function isComplete(): Promise<void> {
  allGood();
  const { user, ask } = behind;
  const parts = {
    account: { ...accountAnswer(), a_new_field: 1 },
    entitlement: { user_id: user.userId, entitlements: [book] },
  };
  const without = await ask(profileOf(user.userId));
  assert.deepEqual([without.status, without.json], [200, { ...parts, matchmaking: null }]);
  const withTicket = await ask(`${profileOf(user.userId)}?ticket_id=${ticketId}`);
  assert.deepEqual([withTicket.status, withTicket.json], [200, { ...parts, matchmaking: ticket }]);
  for (const name of names) {
    const [asked] = behind[name].arrived(pathAt[name]()).slice(-1);
    assert.equal(asked?.headers.get("X-User-Id"), user.userId, name);
    assert.equal(asked?.headers.get("Cookie"), null, name);
  }
}

async function isOnlyOnesOwn(): Promise<void> {
  const other = await logIn(behind.real);
  const asked = () =>
    names.map((name) =>
      behind[name].received.filter(({ path }) => !path.startsWith("/v1/sessions/")).length
    );
  const before = asked();
  for (
    const path of [profileOf(other.userId), profileOf("ann"), profileOf(`${behind.user.userId}x`)]
  ) {
    assertError(await behind.ask(path), 403, "PROFILE_FORBIDDEN");
  }
  assertError(
    await behind.ask(`${profileOf(other.userId)}?partial=true`),
    403,
    "PROFILE_FORBIDDEN",
  );
  assert.deepEqual(asked(), before);
}

async function refusesBadQueries(): Promise<void> {
  const { user, ask, matchmaking } = behind;
  const before = matchmaking.received.length;
  for (const bad of ["ticket_id=..", "ticket_id=", "ticket_id=.", "partial=yes", "partial="]) {
    assertError(await ask(`${profileOf(user.userId)}?${bad}`), 400, "BAD_REQUEST");
  }
  assert.equal(matchmaking.received.length, before);
  matchmaking.behave(404);
  await ask(`${profileOf(user.userId)}?ticket_id=${encodeURIComponent("../x?y#z")}`);
  assert.equal(matchmaking.received.at(-1)?.path, "/v1/matchmaking/tickets/..%2Fx%3Fy%23z");
}

const refusal = (status: number, code: string) => json({ code, message: "no" }, status);

const failures: [failure: string, status: number, behaves: Behaves][] = [
  ["INVALID_RESPONSE", 502, { headers: { "Content-Type": "application/json" }, body: "{" }],
  ["INVALID_RESPONSE", 502, json({ something: "else" })],
  ["INVALID_RESPONSE", 502, { headers: { "Content-Type": "text/html" }, body: "<html>" }],
  ["INVALID_RESPONSE", 502, 400],
  ["UNAUTHORIZED", 502, refusal(401, "UNAUTHORIZED")],
  ["FORBIDDEN", 403, refusal(403, "FORBIDDEN")],
  ["NOT_FOUND", 404, refusal(404, "NOT_FOUND")],
  ["BAD_GATEWAY", 502, refusal(503, "SERVICE_UNAVAILABLE")],
  ["BAD_GATEWAY", 502, { status: 302, headers: { Location: "http://127.0.0.1:9/" } }],
  ["BAD_GATEWAY", 502, "close"],
  ["BAD_GATEWAY", 502, "reset in body"],
  ["BAD_GATEWAY", 502, "wrong length"],
  ["BAD_GATEWAY", 502, "broken head"],
];

async function assertFails(name: Name, failure: string, status: number, maxMs = 3_000) {
  const { user, ask } = behind;
  const code = `${name.toUpperCase()}_${failure}`;
  const path = `${profileOf(user.userId)}?ticket_id=${ticketId}`;
  const whole = await ask(path);
  assertError(whole, status, code);
  const retryAfter = whole.headers.get("Retry-After");
  assert.equal(retryAfter !== null, status === 503, code);
  const from = performance.now();
  const partial = await ask(`${path}&partial=true`);
  assert.ok(performance.now() - from < maxMs, `${code} within ${maxMs} ms`);
  assert.equal(partial.status, 200);
  for (const other of names) {
    if (other === name) assert.deepEqual(partial.json[other], { unavailable: code });
    else assert.equal("unavailable" in partial.json[other], false, `${other} beside ${code}`);
  }
}

async function answersBadly(name: Name): Promise<void> {
  for (const [failure, status, behaves] of failures) {
    allGood();
    behind[name].behaveAt(pathAt[name](), behaves);
    await assertFails(name, failure, status);
    await closeBreaker(name);
  }
}

async function isDownOrSlow(name: Name): Promise<void> {
  allGood();
  await behind[name].stop();
  await assertFails(name, "UNAVAILABLE", 503);
  await behind[name].start();
  await closeBreaker(name);
  for (const behaves of ["hang", "hang after head", "slow body"] as const) {
    if (name === "matchmaking" && behaves !== "slow body") continue; // it takes 6 s
    behind[name].behaveAt(pathAt[name](), behaves);
    await assertFails(name, "TIMEOUT", 504, name === "matchmaking" ? 6_500 : 1_000);
    await closeBreaker(name);
  }
}

/** A success, after which failures are counted anew. */
async function closeBreaker(name: Name): Promise<void> {
  allGood();
  const path = `${profileOf(behind.user.userId)}?ticket_id=${ticketId}`;
  await until(`${name} is asked again`, async () => (await behind.ask(path)).status === 200);
}

async function asksAtTheSameTime(): Promise<void> {
  allGood();
  const { user, ask } = behind;
  const slowly = (receiver: Receiver, name: Name) =>
    receiver.behaveAt(pathAt[name](), { ...good[name]() as object, delayMs: 200 });
  for (const name of names) slowly(behind[name], name);
  const from = performance.now();
  const { status } = await ask(`${profileOf(user.userId)}?ticket_id=${ticketId}`);
  const tookMs = performance.now() - from;
  assert.equal(status, 200);
  assert.ok(tookMs >= 200 && tookMs < 400, `${tookMs} ms`);
}
