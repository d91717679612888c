// A database that accepts connections but does not answer in time: no request waits forever.
import assert from "node:assert/strict";
import { assertError, call, grant, list, revoke } from "../support/api.ts";
import { ownDatabase, withClient } from "../support/databases.ts";
import { settingsOf, startEntitlement } from "../support/entitlement.ts";
import { startService } from "../../tools/servers/service_process.ts";
import { until } from "../../tools/servers/wait.ts";

Deno.test("a database that no longer answers holds a request for a bounded time only", async () => {
  await using database = await ownDatabase();
  await using service = await startService("entitlement", settingsOf(database.serviceUrl));
  assert.equal((await grant(service.url)).status, 200);
  const processes = [database.server.pid];
  await withClient(database.ownerUrl, async (owner) => {
    Deno.kill(database.server.pid, "SIGSTOP"); // from now on there is no new backend
    const { rows } = await owner.query<{ pid: number }>(
      "select pid from pg_stat_activity where usename = 'kenri_entitlement'",
    );
    processes.push(...rows.map(({ pid }) => pid));
  });
  processes.slice(1).forEach((pid) => Deno.kill(pid, "SIGSTOP"));
  try {
    const askedAt = performance.now();
    const answers = await Promise.all([grant(service.url), list(service.url, "ann")]);
    for (const answer of answers) assertError(answer, 503, "SERVICE_UNAVAILABLE");
    const seconds = (performance.now() - askedAt) / 1_000;
    assert.ok(seconds < 15, `${seconds} s`);
    assert.equal((await call(`${service.url}/readyz`)).status, 503);
  } finally {
    processes.forEach((pid) => Deno.kill(pid, "SIGCONT"));
  }
  await until(
    "it is ready again",
    async () => (await call(`${service.url}/readyz`)).status === 200,
  );
  assert.equal((await revoke(service.url)).status, 200);
});

Deno.test("a change that waits too long for a lock is refused, and its key can be used again", async () => {
  await using kenri = await startEntitlement();
  const askedAt = performance.now();
  await withClient(kenri.database.ownerUrl, async (holder) => {
    await holder.query("begin; lock table entitlements in exclusive mode");
    assertError(await grant(kenri.url, {}, "waits"), 503, "SERVICE_UNAVAILABLE");
    const seconds = (performance.now() - askedAt) / 1_000;
    assert.ok(seconds > 9 && seconds < 14, `${seconds} s`);
    await holder.query("rollback");
  });
  assert.equal((await kenri.counts()).idempotency_keys, 0);
  const answer = await grant(kenri.url, {}, "waits");
  assert.deepEqual([answer.status, answer.json.version], [200, 1]);
});
