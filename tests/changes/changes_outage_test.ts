// The database or a replica may die at any moment. A client that repeats its request with the same
// key gets exactly one change.
import assert from "node:assert/strict";
import type { ChangeRequest } from "../../tools/load/change_request.ts";
import { RepeatingClient } from "../../tools/load/repeating_client.ts";
import { type Observation, sendUntilAnswered, startReplicas } from "../support/changes.ts";
import { explain } from "./changes_model.ts";
import { readTables } from "./changes_tables.ts";
import { type OwnDatabase, ownDatabase, withClient } from "../support/databases.ts";
import { until } from "../../tools/servers/wait.ts";

Deno.test("a database that is killed repeatedly loses and duplicates no change", async () => {
  await using database = await ownDatabase();
  await using service = await startReplicas(2, database.serviceUrl);
  const seen = await underLoad(database, service.urls, async (goesOn) => {
    for (let kills = 0; kills < 4; kills++) {
      await goesOn();
      await database.server.kill();
      await database.server.start();
    }
    await goesOn();
  });
  assert.ok(seen.some(({ answer }) => answer?.status === 503), "the outages were not noticed");
  await assertExplained(database, seen);
});

Deno.test("a replica that is killed loses and duplicates no change, because another one replays its answers", async () => {
  await using database = await ownDatabase();
  await using service = await startReplicas(2, database.serviceUrl);
  const seen = await underLoad(database, service.urls, async (goesOn) => {
    await goesOn();
    await service.processes[0]?.kill();
    await goesOn();
  });
  assert.ok(seen.some(({ answer }) => !answer), "the kill was not noticed");
  await assertExplained(database, seen);
});

/** Many clients change entitlements while `trouble` runs. Returns all that they saw. */
async function underLoad(
  { ownerUrl }: OwnDatabase,
  urls: string[],
  trouble: (goesOn: () => Promise<void>) => Promise<void>,
): Promise<Observation[]> {
  const stop = new AbortController();
  const clients = Array.from({ length: 32 }, (_, i) => keepChanging(i, urls, stop.signal));
  const changes = () =>
    withClient(ownerUrl, (owner) => owner.query("select from outbox_events"))
      .then(({ rowCount }) => rowCount ?? 0, () => 0);
  try {
    await trouble(async () => {
      const before = await changes();
      await until("changes are made", async () => await changes() > before + 300);
    });
  } finally {
    stop.abort();
  }
  return (await Promise.all(clients)).flat();
}

/** Makes one change after another, with new keys, of entitlements that others change as well. */
async function keepChanging(
  client: number,
  urls: string[],
  stop: AbortSignal,
): Promise<Observation[]> {
  const repeating = new RepeatingClient(urls);
  const seen: Observation[] = [];
  for (let i = 0; !stop.aborted; i++) {
    const request: ChangeRequest = {
      key: `key-${client}-${i}`,
      action: i % 2 === 0 ? "GRANT" : "REVOKE",
      user: `user-${client % 16}`,
      sku: "sku",
      reason: `reason ${i}`,
      purchase: `purchase ${client}`,
    };
    seen.push(...await sendUntilAnswered(repeating, request));
  }
  return seen;
}

async function assertExplained({ ownerUrl }: OwnDatabase, seen: Observation[]): Promise<void> {
  for (const { answer } of seen) {
    assert.ok(!answer || [200, 409, 503].includes(answer.status), JSON.stringify(answer));
  }
  const expected = explain(seen);
  assert.deepEqual(await withClient(ownerUrl, (owner) => readTables(owner, "")), expected);
}
