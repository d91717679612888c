// The steps of docs/runbook.md for a new version; those for a restore are in tests/restore_*_test.ts.
import assert from "node:assert/strict";
import { withClient } from "./databases.ts";
import { blocksOf, runCommand, runQuery } from "./runbook.ts";
import { migrationSettings, startSystem } from "./system.ts";

const newVersion = "A new version";

Deno.test("the steps of a new version can be taken while the services run", async () => {
  await using system = await startSystem({ replicas: 1 });
  const { ownerUrl } = system.entitlement;
  await withClient(ownerUrl, async (holder) => {
    await holder.query("begin; select from entitlements");
    const { rows: [self] } = await holder.query("select pg_backend_pid() as pid");
    const [longest] = await runQuery<{ pid: number }>(newVersion, 0, ownerUrl);
    assert.equal(longest?.pid, self.pid);
  });
  assert.match(await runCommand(newVersion, 0, migrationSettings(system)), /up to date at/);
  for (const service of ["entitlement", "notification"] as const) await system.restart(service);
});

// Whoever adds a command or a query adds it here, and runs it in a test.
Deno.test("the runbook has no command and no query that the tests do not run", () => {
  const run = {
    "A new version": [1, 1],
    "The entitlement database was restored from a backup": [1, 1],
    "The notification database was restored from a backup": [1, 1],
    "NATS was lost": [0, 1],
  };
  for (const [heading, counts] of Object.entries(run)) {
    const found = [blocksOf(heading, "sh").length, blocksOf(heading, "sql").length];
    assert.deepEqual(found, counts, heading);
  }
});
