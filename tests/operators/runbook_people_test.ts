// The sections of docs/runbook.md for accounts and the gateway.
import assert from "node:assert/strict";
import { resolve, startAccount } from "../support/account.ts";
import { logIn, me, startGateway, untilConnected } from "../support/gateway.ts";
import { until } from "../../tools/servers/wait.ts";
import { runCommand, runQuery } from "./runbook.ts";

const debug = { ACCOUNT_DEBUG_ENABLED: "true" };

Deno.test("events of accounts that wait are found with the command of the runbook", async () => {
  await using account = await startAccount(debug);
  const settings = { ACCOUNT_HTTP_PORT: new URL(account.url).port, USER: "kim" };
  const heading = "A gateway asks account each time";
  assert.match(await runCommand(heading, 1, settings), /Nothing is waiting/);
  await resolve(account, { provider: "p", subject: "s" });
  const published = "select from outbox_events where status = 'PUBLISHED'";
  await until("it is published", async () => (await account.rows(published)).length === 1);
  await account.rows(
    `update outbox_events
     set status = 'PENDING', published_at = null, attempt_count = 3,
       next_retry_at = now() + interval '1 hour', last_error = 'torn'`,
  );
  assert.match(await runCommand(heading, 0, settings), / PENDING +3 .* torn$/m);
});

Deno.test("somebody is kept out and let in again with the commands of the runbook", async () => {
  await using account = await startAccount(debug);
  await using gateway = await startGateway(account);
  await untilConnected(gateway);
  const visitor = await logIn(account);
  const { userId } = visitor;
  await account.rows("update identities set email = 'ann@example.com'");
  const heading = "Somebody must be kept out";
  const settings = {
    ACCOUNT_HTTP_PORT: new URL(account.url).port,
    ...{ USER: "kim", EMAIL: "ann@example.com", USER_ID: userId, REASON: "case 7" },
  };
  const run = (nth: number) => runCommand(heading, nth, settings);
  const statusIs = (status: number) =>
    until(`it is ${status}`, async () => (await me(gateway, visitor)).status === status);
  assert.match(await run(0), new RegExp(userId));
  await statusIs(200);
  await run(1);
  await statusIs(403);
  await run(3);
  await statusIs(200);
  await run(2);
  await statusIs(401);
  assert.match(
    await run(4),
    /^status +ACTIVE$[^]* END_SESSIONS +kim +case 7$[^]* RESUME +kim[^]* SUSPEND +kim/m,
  );
});

Deno.test("the steps after a restore of the account database work", async () => {
  await using account = await startAccount(debug);
  const heading = "The account database was restored from a backup";
  const settings = {
    ACCOUNT_DATABASE_URL: account.database.serviceUrl,
    ACCOUNT_MIGRATION_DATABASE_URL: account.database.ownerUrl,
  };
  assert.match(await runCommand(heading, 0, settings), /up to date/);
  await resolve(account, { provider: "p", subject: "s" });
  await until("nothing waits", async () => {
    const rows = await runQuery(heading, 0, account.database.ownerUrl);
    return rows.length === 0;
  });
});
