// What operators see of the gateway and do across all services: its status, its metrics, and the
// erasure of a user who is logged in.
import assert from "node:assert/strict";
import { startAccount } from "../support/account.ts";
import { call, grant } from "../support/api.ts";
import { logIn, me, startGateway, untilConnected } from "../support/gateway.ts";
import { Browser, startLoginStack } from "../support/login.ts";
import { samplesOf, scrapeOf, valueOf } from "../support/metrics.ts";
import { untilSent } from "../support/notification.ts";
import { metricsBelow } from "../support/pages.ts";
import { look, startStack } from "../support/stack.ts";
import { until } from "../../tools/servers/wait.ts";
import { runOps } from "./ops.ts";

const debug = { GATEWAY_DEBUG_ENABLED: "true" };
const others = ["--without", "entitlement,notification,account,matchmaking"];

Deno.test("logins are counted by how they ended, and the page of metrics has every metric of the gateway", async () => {
  await using stack = await startLoginStack();
  const { gateway, url } = stack;
  const count = async () => {
    const scraped = await scrapeOf(gateway);
    return Object.fromEntries(
      samplesOf(scraped, "gateway_login_total").map((
        { labels, value },
      ) => [labels["result"], value]),
    );
  };
  assert.deepEqual(await count(), { completed: 0, refused: 0, unavailable: 0, error: 0 });
  const browser = new Browser();
  await browser.open(await browser.logInAt(await browser.begin(url), "ann"));
  assert.equal(await browser.me(url), 200);
  const forged = await new Browser().open(`${url}/login/callback?code=x&state=y`);
  assert.equal(forged.status, 302);
  const counted = { completed: 1, refused: 1, unavailable: 0, error: 0 };
  assert.deepEqual(await count(), counted);
  await stack.account.service.kill();
  const bob = new Browser();
  const late = await bob.open(await bob.logInAt(await bob.begin(url), "bob"));
  assert.equal(late.status, 503, late.text);
  assert.deepEqual(await count(), { ...counted, unavailable: 1 });
  const scraped = await scrapeOf(gateway);
  const answered = { service: "account", outcome: "answered" };
  assert.ok((valueOf(scraped, "kenri_ask_duration_seconds_count", answered) ?? 0) > 0);
  const named = [...scraped.types.keys()].sort();
  const described = metricsBelow("Gateway", "Asking other services", "All services")
    .map(({ name }) => name).filter((name) => !/^kenri_(worker|batch)_/.test(name));
  assert.deepEqual(named, described.sort());
  assert.deepEqual(samplesOf(scraped, "kenri_database_up"), [], "it has no database");
  assert.doesNotMatch(await (await fetch(`${gateway.url}/metrics`)).text(), /ann|example\.com/);
});

Deno.test("the status of a gateway says how current it is and what fails behind it", async () => {
  await using account = await startAccount();
  await using gateway = await startGateway(account, debug);
  await untilConnected(gateway);
  const status = () => runOps("ops/ops.ts", { gateway }, ["status", ...others]);
  await until("it is current", async () => (await status()).code === 0);
  const visitor = await logIn(account);
  assert.equal((await me(gateway, visitor)).status, 200);
  const { output } = await status();
  assert.match(output, /^gateway\n {2}account events read +.* ago$/m);
  assert.match(output, /^ {2}users known +[1-9]\d*$/m);
  assert.match(output, /^ {2}services that fail +none$/m);
  assert.match(output, /^All is well\.$/m);

  await account.service.kill();
  await until("it is noticed", async () => {
    const { code, output } = await status();
    return code === 1 && /^! gateway does not know whether it has all account events/m.test(output);
  });
  const stranger = await logIn({ ...account, url: account.url }).catch(() => undefined);
  assert.equal(stranger, undefined, "nobody can log in");
  await using replica = await startGateway(account, debug);
  await until("it gives up asking", async () => {
    await me(replica, visitor);
    const { failing } = await look(replica.url, "/debug/gateway/status");
    return failing.includes("account");
  });
  const failing = await runOps("ops/ops.ts", { gateway: replica }, ["status", ...others]);
  assert.match(failing.output, /^! gateway does not ask account for a while, because it failed$/m);
});

Deno.test("the status of a gateway needs a credential where callers need one, and no session is one", async () => {
  await using account = await startAccount();
  await using closed = await startGateway(account);
  assert.equal((await call(`${closed.url}/debug/gateway/status`, {})).status, 404);
  const entry = `kim sha256:${"a".repeat(64)} debug:read`;
  await using gateway = await startGateway(account, { ...debug, ACCESS_TOKENS: entry });
  const visitor = await logIn(account);
  for (const headers of [{}, { Cookie: visitor.cookie }]) {
    const { status } = await call(`${gateway.url}/debug/gateway/status`, { headers });
    assert.equal(status, 401);
  }
});

Deno.test("a user who is logged in is erased from every service, and is logged out", async () => {
  await using stack = await startStack();
  await using account = await startAccount({ ACCOUNT_DEBUG_ENABLED: "true" });
  await using gateway = await startGateway(account);
  await untilConnected(gateway);
  const visitor = await logIn(account, { subject: "ann-secret" });
  const { userId: user_id } = visitor;
  assert.equal((await me(gateway, visitor)).status, 200);
  await grant(stack.entitlement.url, { user_id });
  await untilSent(stack.place, 1);
  const erase = (...args: string[]) => {
    const { entitlement, notification } = stack;
    const all = { entitlement, notification, account };
    return runOps("ops/ops.ts", all, ["erase-user", user_id, "--reason", "case 7", ...args]);
  };
  const roles = (roles: string[]) =>
    call(`${account.url}/v1/users/${user_id}/roles`, {
      method: "PUT",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ roles }),
    });
  await roles(["ADMIN"]);
  const refused = await erase();
  assert.deepEqual([refused.code, refused.errors], [1, "account: the user is the last ADMIN\n"]);
  assert.equal((await me(gateway, visitor)).status, 200);
  const entitled = `select from entitlements where user_id = '${user_id}'`;
  assert.equal((await stack.entitlement.rows(entitled)).length, 1, "nothing was erased anywhere");
  await account.rows("delete from account_roles where role = 'ADMIN'");

  const dry = await erase("--dry-run");
  assert.match(dry.output, /^users +1$[^]*^identities +1$[^]*^entitlements +1$/m);
  assert.equal((await me(gateway, visitor)).status, 200);
  const { code, output, errors } = await erase("--json");
  assert.equal(code, 0, errors);
  const { rows } = JSON.parse(output);
  assert.deepEqual([rows.users, rows.identities, rows.entitlements, rows.notifications], [
    ...[1, 1, 1, 1],
  ]);
  await until("the session has ended", async () => (await me(gateway, visitor)).status === 401);
  assert.equal((await stack.entitlement.rows(entitled)).length, 0);
  assert.equal((await account.rows("select from identities")).length, 0);
  assert.equal((await erase()).code, 0, "it is safe to repeat");
});
