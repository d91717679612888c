// Concurrent changes have the effect of changes one after another, and a change that fails fails
// alone.
import assert from "node:assert/strict";
import { getLogger } from "@logtape/logtape";
import { entitlementApp } from "../../entitlement/app.ts";
import { openAuthenticator } from "../../shared/access/authenticator.ts";
import { type Database, openDatabase } from "../../shared/postgres/postgres.ts";
import { Handover } from "../../shared/queue/handover.ts";
import { type ChangeRequest, grant, toHttp } from "../../tools/load/change_request.ts";
import { type Observation, sendChange, startReplicas, transactionsIn } from "../support/changes.ts";
import { explain } from "./changes_model.ts";
import { readTables } from "./changes_tables.ts";
import { freshDatabase, type TestDatabase, withClient } from "../support/databases.ts";
import { waitingForLocks, whileTableIsLocked } from "../support/locks.ts";
import { until } from "../../tools/servers/wait.ts";

Deno.test("50 requests with one key on two replicas are one change, and all get the same bytes", async () => {
  await using database = await freshDatabase("entitlement");
  await using service = await startReplicas(2, database.serviceUrl);
  // The table is locked, so that the first transaction waits and the other replica waits for it.
  const seen = await whileTableIsLocked(database.ownerUrl, "idempotency_keys", async (release) => {
    const sending = times(50, (i) => sendChange(service.urls[i % 2] as string, grant()));
    await until("both replicas wait", async () => await waitingForLocks(database.ownerUrl) >= 2);
    await release();
    return await Promise.all(sending);
  });
  assert.deepEqual(statuses(seen), { 200: 50 });
  assert.equal(new Set(seen.map(({ answer }) => answer?.body)).size, 1);
  assert.equal(seen.filter(({ answer }) => !answer?.replayed).length, 1);
  await assertExplained(database, seen);
});

Deno.test("50 concurrent changes of one entitlement happen one after another", async () => {
  await using database = await freshDatabase("entitlement");
  await using service = await startReplicas(2, database.serviceUrl);
  const seen = await Promise.all(times(50, (i) => {
    const action = i % 4 < 2 ? "GRANT" : "REVOKE";
    return sendChange(service.urls[i % 2] as string, grant({ key: `key-${i}`, action }));
  }));
  await assertExplained(database, seen);
  await service.stop();
  assert.deepEqual(await transactionsIn(database.ownerUrl), { rolledBack: 0, deadlocks: 0 });
});

Deno.test("50 concurrent requests that share one key are one change and 49 conflicts", async () => {
  await using database = await freshDatabase("entitlement");
  await using service = await startReplicas(1, database.serviceUrl);
  const requests = times(50, (i) => grant({ sku: `sku-${i}` }));
  const seen = await sendTogether(database, service.urls[0] as string, requests);
  assert.deepEqual(statuses(seen), { 200: plugs + 1, 409: 49 });
  await assertExplained(database, seen);
  await service.stop();
  assert.deepEqual(await transactionsIn(database.ownerUrl), { rolledBack: 0, deadlocks: 0 });
});

Deno.test("an expired key can be used for one other request", async () => {
  await using database = await freshDatabase("entitlement");
  await using service = await startReplicas(2, database.serviceUrl);
  const first = await sendChange(service.urls[0] as string, grant());
  assert.equal(first.answer?.status, 200);
  await withClient(
    database.ownerUrl,
    (owner) => owner.query("update idempotency_keys set expires_at = now()"),
  );
  const second = grant({ sku: "another" });
  const seen = await Promise.all(
    times(20, (i) => sendChange(service.urls[i % 2] as string, second)),
  );
  assert.deepEqual(statuses(seen), { 200: 20 });
  assert.equal(seen.filter(({ answer }) => !answer?.replayed).length, 1);
  const late = await sendChange(service.urls[0] as string, grant());
  assert.equal(JSON.parse(late.answer?.body ?? "").code, "IDEMPOTENCY_KEY_CONFLICT");
});

Deno.test("a change that the database refuses fails alone", async () => {
  await using database = await freshDatabase("entitlement");
  await withClient(
    database.ownerUrl,
    (owner) => owner.query("alter table entitlements add check (user_id <> 'poison')"),
  );
  await using service = await startReplicas(1, database.serviceUrl);
  const requests = ["good-1", "good-2", "poison", "good-3", "good-4"]
    .map((user) => grant({ user, key: `key-of-${user}` }));
  const seen = await sendTogether(database, service.urls[0] as string, requests);
  const poisoned = seen.filter(({ request }) => request.user === "poison");
  assert.deepEqual(statuses(poisoned), { 500: 1 });
  assert.deepEqual(JSON.parse(poisoned[0]?.answer?.body ?? ""), {
    code: "INTERNAL_ERROR",
    message: "the request failed because of an error in the service",
  });
  assert.deepEqual(statuses(seen), { 200: plugs + 4, 500: 1 });
  await assertExplained(database, seen);
  await service.stop();
  const { rolledBack } = await transactionsIn(database.ownerUrl);
  assert.equal(rolledBack, 2, "the batch failed as a whole, then the bad one alone");
});

Deno.test("when too many changes wait, callers are asked to try again, and no change is lost", async () => {
  await using database = await freshDatabase("entitlement");
  const pool = openDatabase(database.serviceUrl, "test");
  const send = changesOf(pool);
  const total = 2_000; // 1,000 may wait while two commits of 128 are under way
  const requests = times(total, (i) => grant({ key: `key-${i}`, user: `user-${i}` }));
  const answers = await whileTableIsLocked(
    database.ownerUrl,
    "idempotency_keys",
    async (release) => {
      const sending = requests.map(send);
      await Promise.any(sending); // only refusals can be answered now
      await release();
      return await Promise.all(sending);
    },
  );
  for (const { status, headers } of answers) {
    assert.equal(status, headers.has("Retry-After") ? 503 : 200);
  }
  const refused = requests.filter((_, i) => answers[i]?.status === 503);
  assert.ok(refused.length > 500, `only ${refused.length} were refused`);
  assert.deepEqual(await rowCounts(database), times(4, () => total - refused.length));

  const again = await Promise.all(refused.map(send));
  assert.ok(again.every(({ status }) => status === 200));
  assert.ok(again.every(({ headers }) => !headers.has("Idempotency-Replayed")));
  assert.deepEqual(await rowCounts(database), times(4, () => total));
  await pool.end();
});

const plugs = 2; // the number of concurrent commits of a replica

/** While these commits wait, the other changes gather behind them and are committed together. */
function sendTogether(
  { ownerUrl }: TestDatabase,
  url: string,
  requests: ChangeRequest[],
): Promise<Observation[]> {
  return whileTableIsLocked(ownerUrl, "entitlement_audit", async (release) => {
    const sending: Promise<Observation>[] = [];
    for (const name of times(plugs, (i) => `plug-${i}`)) {
      sending.push(sendChange(url, grant({ user: name, key: name })));
      await until("it waits", async () => await waitingForLocks(ownerUrl) === sending.length);
    }
    sending.push(...requests.map((request) => sendChange(url, request)));
    const arrived = await fetch(`${url}/livez`); // answered after all of them have arrived
    await arrived.body?.cancel();
    await release();
    return await Promise.all(sending);
  });
}

/** The application without its server: ten thousand sockets would have limits of their own. */
function changesOf(database: Database): (request: ChangeRequest) => Promise<Response> {
  const app = entitlementApp({
    database,
    toRelay: new Handover(),
    toCarryOut: new Handover(),
    checks: {},
    authenticator: openAuthenticator,
    log: getLogger("test"),
  }, {
    commit: { idempotencyTtlMs: 60_000 },
    points: { unit: "points", maxBalance: 1 },
    reservations: { pollIntervalMs: 1, maxAheadMs: 1 },
  });
  return async (request) => {
    const { path, init } = toHttp(request);
    return await app.fetch(new Request(`http://localhost${path}`, init));
  };
}

async function assertExplained(database: TestDatabase, seen: Observation[]): Promise<void> {
  const expected = explain(seen);
  const tables = await withClient(database.ownerUrl, (owner) => readTables(owner, ""));
  assert.deepEqual(tables, expected);
}

function rowCounts(database: TestDatabase): Promise<number[]> {
  return withClient(database.ownerUrl, async (owner) => {
    const tables = await readTables(owner, "");
    return Object.values(tables).map((rows) => rows.length);
  });
}

function statuses(seen: Observation[]): Record<string, number> {
  const groups = Object.groupBy(seen, ({ answer }) => String(answer?.status));
  return Object.fromEntries(
    Object.entries(groups).map(([status, group = []]) => [status, group.length]),
  );
}

function times<Result>(count: number, make: (index: number) => Result): Result[] {
  return Array.from({ length: count }, (_, i) => make(i));
}
