// The steps of docs/runbook.md for a new version. Those for a restore are in tests/database and
// tests/nats, those for failures in runbook_events_test.ts and runbook_outages_test.ts.
import assert from "node:assert/strict";
import { withClient } from "../support/databases.ts";
import { blocksOf, headings, runCommand, runQuery } from "./runbook.ts";
import { migrationSettings, startSystem } from "../support/system.ts";

const newVersion = "A new version";

Deno.test("the steps for a new version work while the services run", async () => {
  await using system = await startSystem({ replicas: 1 });
  const { ownerUrl } = system.entitlement;
  await withClient(ownerUrl, async (holder) => {
    await holder.query("begin; select from entitlements");
    const { rows: [self] } = await holder.query("select pg_backend_pid() as pid");
    const [longest] = await runQuery<{ pid: number }>(newVersion, 0, ownerUrl);
    assert.equal(longest?.pid, self.pid);
  });
  const output = await runCommand(newVersion, 0, migrationSettings(system));
  assert.match(output, /up to date at.*exists with the wanted settings/s);
  for (const service of ["entitlement", "notification"] as const) await system.restart(service);
});

// A new command or query of the runbook needs an entry here and a test that runs it.
Deno.test("the runbook has no command and no query that the tests do not run", () => {
  const run: Record<string, [commands: number, queries: number]> = {
    "First look": [1, 0],
    "A service is down": [1, 0],
    "A process stands still or grows": [0, 0],
    "A database is unavailable": [1, 1],
    "A database is slow": [0, 2],
    "Changes fail": [0, 0],
    "Reservations are late": [4, 0],
    "Points do not add up": [2, 0],
    "Orders are not sent": [3, 0],
    "Orders fail": [1, 0],
    "An endpoint fails": [4, 0],
    "Logins fail": [0, 0],
    "A gateway asks account each time": [2, 0],
    "People wait or see errors": [0, 0],
    "Somebody must be kept out": [5, 0],
    "A session key leaked": [0, 0],
    "Redis is unavailable": [2, 0],
    "Redis can lose everything": [3, 0],
    "Nobody is matched": [2, 0],
    "Tickets are invalid": [2, 0],
    "Matches are not published": [2, 0],
    "NATS is unavailable": [2, 0],
    "A certificate is refused": [0, 0],
    "NATS does not permit": [0, 0],
    "A stream is missing or differs": [1, 0],
    "Events do not reach the stream": [2, 0],
    "Events are not received": [2, 0],
    "Dead letters": [4, 0],
    "The channel fails": [1, 0],
    "Notifications are late": [2, 1],
    "Events are missing": [4, 0],
    "Where is one event?": [3, 0],
    "Tables grow": [0, 1],
    "The audit is not what was written": [2, 0],
    "A new version": [1, 1],
    "The entitlement database was restored from a backup": [1, 1],
    "The notification database was restored from a backup": [1, 1],
    "The account database was restored from a backup": [1, 1],
    "NATS was lost": [0, 1],
  };
  const found = headings.map((heading) => [
    heading,
    [blocksOf(heading, "sh").length, blocksOf(heading, "sql").length],
  ]);
  assert.deepEqual(Object.fromEntries(found), run);
});
