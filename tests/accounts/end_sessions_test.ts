// The end of sessions: what account answers about them, and which ends it makes known.
import assert from "node:assert/strict";
import { type Account, resolve, send, startAccount } from "../support/account.ts";
import { assertError } from "../support/api.ts";

let account: Account;
Deno.test.beforeAll(async () => {
  account = await startAccount();
});
Deno.test.afterAll(() => account.close());

const inMs = (ms: number) => new Date(Date.now() + ms).toISOString();
const identityOf = (subject: string) => ({ provider: "https://issuer.example", subject });
const newUser = async (subject: string = crypto.randomUUID()) =>
  (await resolve(account, identityOf(subject))).user_id;
const end = (session: string, user_id: string, expires_at = inMs(60_000)) =>
  send("POST", `${account.url}/v1/sessions/${session}:end`, { user_id, expires_at });
const stateOf = async (session: string, user: string) =>
  (await send("GET", `${account.url}/v1/sessions/${session}?user_id=${user}`)).json;

async function eventsOf(user: string): Promise<unknown[]> {
  const rows = await account.rows<{ event: unknown[] }>(
    `select json_build_array(event_type, payload->'session_epoch', payload->'session_id') as event
     from outbox_events where aggregate_key = $1 order by created_at offset 1`,
    [user],
  );
  return rows.map(({ event }) => event);
}

Deno.test("one session ends once, however often it is ended, and others stay", async () => {
  const [user, session, other] = [await newUser(), crypto.randomUUID(), crypto.randomUUID()];
  const answers = await Promise.all(Array.from({ length: 20 }, () => end(session, user)));
  assert.ok(answers.every(({ status }) => status === 204));
  const state = { account_status: "ACTIVE", roles: ["USER"], session_epoch: 1 };
  assert.deepEqual(await stateOf(session, user), { ...state, ended: true });
  assert.deepEqual(await stateOf(other, user), { ...state, ended: false });
  assert.deepEqual(await eventsOf(user), [["SessionEnded", 1, session]]);
});

Deno.test("a session has ended by its own id, or by that of the session at the issuer", async () => {
  const user = await newUser();
  const [session, atIssuer] = [crypto.randomUUID(), crypto.randomUUID()];
  const hasEnded = async (one: string, issuerSession: string) => {
    const query = `user_id=${user}&issuer_session=${issuerSession}`;
    return (await send("GET", `${account.url}/v1/sessions/${one}?${query}`)).json.ended;
  };
  assert.equal(await hasEnded(session, atIssuer), false);
  await end(session, user);
  assert.equal(await hasEnded(session, atIssuer), true);
  assert.equal(await hasEnded(crypto.randomUUID(), atIssuer), false);
  await end(atIssuer, user);
  assert.equal(await hasEnded(crypto.randomUUID(), atIssuer), true);
  const bad = `${account.url}/v1/sessions/${session}?user_id=${user}&issuer_session=x`;
  assertError(await send("GET", bad), 400, "BAD_REQUEST", "issuer_session must be a UUID");
});

Deno.test("the end of all sessions begins a new epoch each time", async () => {
  const user = await newUser();
  for (const epoch of [2, 3]) {
    const { status } = await send("POST", `${account.url}/v1/users/${user}/sessions:end`);
    assert.equal(status, 204);
    assert.equal((await stateOf(crypto.randomUUID(), user)).session_epoch, epoch);
  }
  assert.deepEqual(await eventsOf(user), [["SessionsEnded", 2, null], ["SessionsEnded", 3, null]]);
});

Deno.test("ended sessions are listed in the order of their end, in pages, until an hour after they would have expired", async () => {
  await using place = await startAccount();
  const { user_id } = await resolve(place, identityOf("list"));
  const sessions = Array.from({ length: 5 }, () => crypto.randomUUID());
  for (const [i, session] of sessions.entries()) {
    const expires_at = inMs([60_000, -3_660_000, -3_540_000][i] ?? 60_000);
    await send("POST", `${place.url}/v1/sessions/${session}:end`, { user_id, expires_at });
  }
  const list = (query: string) => send("GET", `${place.url}/v1/sessions/ended?${query}`);
  const first = await list("limit=2");
  const second = await list(`limit=2&cursor=${first.json.next_cursor}`);
  const found = [first, second].flatMap(({ json }) => json.sessions);
  const expected = sessions.filter((_, i) => i !== 1);
  assert.deepEqual(found.map(({ session_id }) => session_id), expected);
  assert.equal(second.json.next_cursor, undefined);
  assert.deepEqual(Object.keys(found[0]), ["session_id", "user_id", "ended_at", "expires_at"]);
  const since = await list(`since=${encodeURIComponent(found[2].ended_at)}`);
  assert.deepEqual(since.json.sessions, found.slice(2));
  const both = await list(`since=${encodeURIComponent(found[1].ended_at)}&limit=1`);
  const rest = await list(
    `since=${encodeURIComponent(found[1].ended_at)}&cursor=${both.json.next_cursor}`,
  );
  assert.deepEqual([...both.json.sessions, ...rest.json.sessions], found.slice(1));
});

Deno.test("the sessions of an identity end, or the one that is named, and nobody is registered", async () => {
  const [user, session] = [await newUser("logs-out"), crypto.randomUUID()];
  const logOut = (fields: Record<string, unknown>) =>
    send("POST", `${account.url}/v1/identities:end-sessions`, fields);
  const before = await account.rows("select from users");
  const known = identityOf("logs-out");
  for (
    const fields of [
      { ...known, session_id: session, expires_at: inMs(60_000) },
      { ...known, session_id: session.toUpperCase() },
      known,
      identityOf("unknown"),
      { ...identityOf("unknown"), session_id: crypto.randomUUID() },
      { provider: "https://other.example", subject: "logs-out" },
    ]
  ) {
    const { status, text } = await logOut(fields);
    assert.equal(status, 204, text);
  }
  assert.deepEqual(await eventsOf(user), [["SessionEnded", 1, session], [
    "SessionsEnded",
    2,
    null,
  ]]);
  assert.equal((await account.rows("select from users")).length, before.length);
});

Deno.test("without its expiry, the end of an issuer's session is kept for 400 days", async () => {
  await newUser("kept");
  const session_id = crypto.randomUUID();
  const path = `${account.url}/v1/identities:end-sessions`;
  const { status } = await send("POST", path, { ...identityOf("kept"), session_id });
  assert.equal(status, 204);
  const [row] = await account.rows(
    `select round(extract(epoch from expires_at - now()) / 86400)::int as days
     from ended_sessions where session_id = $1`,
    [session_id],
  );
  assert.deepEqual(row, { days: 400 });
});

Deno.test("sessions of unknown users are unknown", async () => {
  const unknown = crypto.randomUUID();
  const answers = [
    await end(crypto.randomUUID(), unknown),
    await send("POST", `${account.url}/v1/users/${unknown}/sessions:end`),
    await send("GET", `${account.url}/v1/sessions/${unknown}?user_id=${unknown}`),
  ];
  for (const answer of answers) assertError(answer, 404, "NOT_FOUND", "user not found");
});
