// who is registered once, what changes an account, and who may.
import assert from "node:assert/strict";
import { call } from "../support/api.ts";
import { post, resolve, send, startAccount } from "../support/account.ts";

Deno.test("A-101: 64 first logins of one identity at once lead to one user", async () => {
  await using account = await startAccount();
  const identity = { provider: "https://issuer.example", subject: "s-1", email: "ann@example.com" };
  const resolved = await Promise.all(
    Array.from({ length: 64 }, () => resolve(account, identity)),
  );
  const [first] = resolved;
  for (const { is_new: _, ...user } of resolved) {
    assert.deepEqual(user, {
      user_id: first?.user_id,
      account_status: "ACTIVE",
      roles: ["USER"],
      session_epoch: 1,
    });
  }
  assert.equal(resolved.filter(({ is_new }) => is_new).length, 1);
  const rows = await account.rows(
    `select (select count(*)::int from users) as users,
       (select count(*)::int from identities) as identities,
       (select count(*)::int from account_roles) as roles,
       (select count(*)::int from audit_logs) as audit,
       (select count(*)::int from outbox_events) as events`,
  );
  assert.deepEqual(rows, [{ users: 1, identities: 1, roles: 1, audit: 1, events: 1 }]);
});

Deno.test("an account is changed, suspended and resumed, and its sessions end", async () => {
  await using account = await startAccount();
  const { user_id } = await resolve(account, { provider: "p", subject: "s", name: "Ann" });
  const path = `${account.url}/v1/users/${user_id}`;
  const patched = await send("PATCH", path, { locale: "en-GB" }, { "If-Match": '"1"' });
  assert.deepEqual([patched.status, patched.json.display_name, patched.json.version], [
    ...[200, "Ann", 2],
  ]);
  const late = await send("PATCH", path, { locale: null }, { "If-Match": '"1"' });
  assert.deepEqual([late.status, late.json.code], [412, "PRECONDITION_FAILED"]);
  for (let i = 0; i < 2; i++) {
    assert.equal((await post(`${path}:suspend`, { reason: "spam" })).status, 204);
  }
  const admin = await send("PUT", `${path}/roles`, { roles: ["ADMIN", "USER"] });
  assert.deepEqual(admin.json.roles, ["USER", "ADMIN"]);
  assert.equal((await post(`${path}:resume`, { reason: "a mistake" })).status, 204);
  const last = await post(`${path}:suspend`, { reason: "spam" });
  assert.deepEqual([last.status, last.json.code], [409, "LAST_ADMIN"]);
  const session = crypto.randomUUID();
  const soon = new Date(Date.now() + 60_000).toISOString();
  for (let i = 0; i < 2; i++) {
    const ended = await post(`${account.url}/v1/sessions/${session}:end`, {
      user_id,
      expires_at: soon,
    });
    assert.equal(ended.status, 204, ended.text);
  }
  assert.equal((await call(`${path}/sessions:end`, { method: "POST" })).status, 204);
  const state = await call(`${account.url}/v1/sessions/${session}?user_id=${user_id}`, {});
  assert.deepEqual(state.json, {
    account_status: "ACTIVE",
    roles: ["USER", "ADMIN"],
    session_epoch: 2,
    ended: true,
  });
  assert.equal(state.headers.get("ETag"), '"5"');
  const list = await call(`${account.url}/v1/sessions/ended`, {});
  assert.deepEqual(list.json.sessions.map((ended: { session_id: string }) => ended.session_id), [
    session,
  ]);
  const audit = await call(`${path}/audit`, {});
  assert.deepEqual(audit.json.audit.map(({ action }: { action: string }) => action), [
    ...["END_SESSIONS", "END_SESSION", "RESUME", "CHANGE_ROLES", "SUSPEND", "UPDATE", "REGISTER"],
  ]);
});
