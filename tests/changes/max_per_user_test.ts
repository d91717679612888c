// With entitlement.max-per-user no user gets more entitlements than that, whoever changes them and
// when.
import assert from "node:assert/strict";
import { assertError, grant, list, revoke } from "../support/api.ts";
import { grant as granted } from "../../tools/load/change_request.ts";
import { sendChange, startReplicas, transactionsIn } from "../support/changes.ts";
import { freshDatabase } from "../support/databases.ts";
import { ask, rowCounts, startEntitlement } from "../support/entitlement.ts";
import { scrapeOf, valueOf } from "../support/metrics.ts";

const overLimit = "the user has as many entitlements as allowed";

Deno.test("concurrent first changes on two replicas give no user more entitlements than allowed", async () => {
  await using database = await freshDatabase("entitlement");
  const settings = { ENTITLEMENT_MAX_PER_USER: "5" };
  await using service = await startReplicas(2, database.serviceUrl, settings);
  const seen = await Promise.all(Array.from({ length: 120 }, (_, i) =>
    sendChange(
      service.urls[i % 2] as string,
      granted({ key: `key-${i}`, user: `user-${i % 3}`, sku: `sku-${i}` }),
    )));
  const refusals = seen.filter(({ answer }) => answer?.status === 409);
  assert.equal(refusals.length, 120 - 15);
  assert.ok(refusals.every(({ answer }) => answer?.body.includes("ENTITLEMENT_LIMIT_REACHED")));
  const counted = await ask(
    database.ownerUrl,
    "select user_id, count(*)::int from entitlements group by user_id order by user_id",
  );
  assert.deepEqual(counted, [0, 1, 2].map((i) => ({ user_id: `user-${i}`, count: 5 })));
  await service.stop();
  assert.deepEqual(await transactionsIn(database.ownerUrl), { rolledBack: 0, deadlocks: 0 });
});

Deno.test("a user at the limit can change existing entitlements and get no new ones", async () => {
  await using kenri = await startEntitlement({ ENTITLEMENT_MAX_PER_USER: "2" });
  const { url, database } = kenri;
  const change = (sku: string) => ({ user_id: "ann", stock_keeping_unit: sku });
  assert.equal((await grant(url, change("book"))).status, 200);
  assert.equal((await revoke(url, change("film"))).status, 200); // counts, although revoked
  const before = await rowCounts(database.ownerUrl);
  const first = await grant(url, change("song"), "one-too-many");
  assertError(first, 409, "ENTITLEMENT_LIMIT_REACHED", overLimit);
  assertError(await revoke(url, change("game")), 409, "ENTITLEMENT_LIMIT_REACHED", overLimit);
  const stored = before.idempotency_keys + 2;
  assert.deepEqual(await rowCounts(database.ownerUrl), { ...before, idempotency_keys: stored });

  const again = await grant(url, change("song"), "one-too-many");
  assert.deepEqual([again.status, again.text], [409, first.text]);
  assert.equal(again.headers.get("Idempotency-Replayed"), "true");
  assert.equal((await revoke(url, change("book"))).status, 200);
  assert.equal((await grant(url, change("film"))).status, 200);
  assertError(await grant(url, change("film")), 409, "ENTITLEMENT_STATE_CONFLICT");
  assert.equal((await grant(url, { user_id: "bob" })).status, 200);
  assert.equal((await list(url, "ann")).json.entitlements.length, 2);
  const scraped = await scrapeOf({ url });
  const limit = "entitlements_per_user";
  assert.equal(valueOf(scraped, "kenri_refused_total", { limit }), 2, "a replay is none");
  const conflicts = { action: "grant", result: "state_conflict" };
  assert.equal(valueOf(scraped, "entitlement_command_total", conflicts), 2);
});
