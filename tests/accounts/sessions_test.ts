// G-102 over HTTP: what a session allows, and how it ends on every replica.
import assert from "node:assert/strict";
import { call } from "../support/api.ts";
import { post, startAccount } from "../support/account.ts";
import { logIn, me, startGateway } from "../support/gateway.ts";
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
