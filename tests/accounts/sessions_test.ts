// G-102 over HTTP: what a session allows, and how it ends on every replica.
import assert from "node:assert/strict";
import { assertError, call } from "../support/api.ts";
import { post, startAccount } from "../support/account.ts";
import { csrf, logIn, logOut, me, startGateway, untilItKnows } from "../support/gateway.ts";
import { until } from "../../tools/servers/wait.ts";

Deno.test("G-102: /v1/me answers 401, 200 and 403, and the end of sessions reaches every replica", async () => {
  await using account = await startAccount();
  await using one = await startGateway(account);
  await using other = await startGateway(account);
  const nobody = await call(`${one.url}/v1/me`, {});
  assert.deepEqual([nobody.status, nobody.json.code], [401, "UNAUTHORIZED"]);
  const ann = await logIn(account);
  for (const gateway of [one, other]) {
    const { status, json } = await me(gateway, ann);
    assert.equal(status, 200);
    assert.deepEqual([json.user_id, json.account_status, json.roles], [
      ...[ann.userId, "ACTIVE", ["USER"]],
    ]);
  }
  const path = `${account.url}/v1/users/${ann.userId}`;
  await post(`${path}:suspend`, { reason: "spam" });
  for (const gateway of [one, other]) {
    await until("it refuses", async () => (await me(gateway, ann)).status === 403);
    assert.equal((await me(gateway, ann)).json.code, "ACCOUNT_INACTIVE");
  }
  await post(`${path}:resume`, { reason: "a mistake" });
  for (const gateway of [one, other]) {
    await until("it lets in again", async () => (await me(gateway, ann)).status === 200);
  }
  await call(`${path}/sessions:end`, { method: "POST" });
  for (const gateway of [one, other]) {
    await until("the session has ended", async () => (await me(gateway, ann)).status === 401);
  }
});

Deno.test("G-102: a logout needs its token, ends the session on every replica, and no other", async () => {
  await using account = await startAccount();
  const byEvents = { GATEWAY_SESSION_STALENESS: "1h" }; // not by asking the account service
  await using one = await startGateway(account, byEvents);
  await using other = await startGateway(account, byEvents);
  const subject = crypto.randomUUID();
  const phone = await logIn(account, { subject });
  const desk = await logIn(account, { subject });
  for (const gateway of [one, other]) {
    for (const device of [phone, desk]) await untilItKnows(gateway, device);
  }
  assertError(await logOut(one, phone, {}), 403, "CSRF_REJECTED");
  assert.equal((await me(one, phone)).status, 200, "a refused logout changes nothing");
  const ended = await logOut(one, phone, await csrf(one, phone));
  assert.deepEqual([ended.status, ended.text], [204, ""]);
  assert.match(ended.headers.get("Set-Cookie") ?? "", /^kenri=; Max-Age=0; Path=\/; HttpOnly/);
  assert.equal((await me(one, phone)).status, 401, "at once on the replica that ended it");
  await until("the other replica knows", async () => (await me(other, phone)).status === 401);
  for (const gateway of [one, other]) assert.equal((await me(gateway, desk)).status, 200);
  assertError(await logOut(one, phone, {}), 401, "UNAUTHORIZED");
});

Deno.test("a logout from everywhere ends all sessions of the user, and of nobody else", async () => {
  await using account = await startAccount();
  await using one = await startGateway(account);
  await using other = await startGateway(account);
  const subject = crypto.randomUUID();
  const devices = [await logIn(account, { subject }), await logIn(account, { subject })] as const;
  const bob = await logIn(account);
  const token = await csrf(one, devices[0]);
  assertError(await logOut(one, devices[0], token, "?all=yes"), 400, "BAD_REQUEST");
  assert.equal((await logOut(one, devices[0], token, "?all=true")).status, 204);
  for (const device of devices) {
    assert.equal((await me(one, device)).status, 401, "at once on the replica that ended them");
    await until("the other replica knows", async () => (await me(other, device)).status === 401);
  }
  const actors = await account.rows("select actor from audit_logs where action = 'END_SESSIONS'");
  assert.deepEqual(actors, [{ actor: devices[0].userId }], "the audit says who has logged out");
  assert.equal((await me(one, bob)).status, 200);
  const again = await logIn(account, { subject });
  for (const gateway of [one, other]) assert.equal((await me(gateway, again)).status, 200);
});

Deno.test("a suspended user can't do anything, and can go on after the account was resumed", async () => {
  await using account = await startAccount();
  await using gateway = await startGateway(account);
  const ann = await logIn(account);
  const token = await csrf(gateway, ann);
  const path = `${account.url}/v1/users/${ann.userId}`;
  await post(`${path}:suspend`, { reason: "spam" });
  await until("it refuses", async () => (await me(gateway, ann)).status === 403);
  for (const query of ["", "?all=true"]) {
    assertError(await logOut(gateway, ann, token, query), 403, "ACCOUNT_INACTIVE");
  }
  const anything = await call(`${gateway.url}/v1/anything`, { headers: ann.as() });
  assertError(anything, 403, "ACCOUNT_INACTIVE");
  await post(`${path}:resume`, { reason: "a mistake" });
  await until("it lets in again", async () => (await me(gateway, ann)).status === 200);
  assert.equal((await logOut(gateway, ann, token)).status, 204);
});

Deno.test("a logout that the account service can't store is refused, and can be repeated", async () => {
  await using account = await startAccount();
  await using gateway = await startGateway(account);
  const ann = await logIn(account);
  const token = await csrf(gateway, ann);
  await account.service.kill();
  const failed = await logOut(gateway, ann, token);
  assertError(failed, 503, "ACCOUNT_UNAVAILABLE");
  assert.match(failed.headers.get("Retry-After") ?? "", /^\d+$/);
  assert.equal(failed.headers.get("Set-Cookie"), null, "the browser keeps the session");
});
