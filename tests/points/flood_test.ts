// A flood of reservations that are due at one moment is granted by two replicas, each once, and other
// changes go on meanwhile: P-109.
import assert from "node:assert/strict";
import { grant } from "../support/api.ts";
import { startEntitlement } from "../support/entitlement.ts";
import {
  assertSums,
  grantPoints,
  inMs,
  insertReservations,
  reserve,
  spendPoints,
  statusesOf,
  untilAllAre,
} from "../support/points.ts";
import { startService } from "../../tools/servers/service_process.ts";
import { until } from "../../tools/servers/wait.ts";

const count = 10_000;
const users = 700;

Deno.test("P-109: many that are due in one second are granted once each by two replicas, while other changes go on", async () => {
  await using kenri = await startEntitlement();
  const { database: { ownerUrl } } = kenri;
  await using other = await startService("entitlement", kenri.settings);
  const later = await reserve(kenri.url, { user_id: "later", execute_at: inMs(60_000) });
  await insertReservations(ownerUrl, { count, users, fromMs: 3_000, overMs: 1_000 });
  const granted = async () => (await statusesOf(ownerUrl))["DONE"] ?? 0;
  await until("they are being granted", async () => await granted() > 0);
  let drained = false;
  const draining = until("all are granted", async () => await granted() === count, 60_000)
    .finally(() => drained = true);
  let slowestMs = 0;
  let changes = 0;
  const urls = [kenri.url, other.url];
  const shops = Array.from({ length: 4 }, async (_, shop) => {
    const url = urls[shop % 2] ?? "";
    while (!drained) {
      // One of them has points that are also granted by the flood.
      const user = { user_id: shop < 2 ? `shop-${shop}` : `user-${shop}` };
      for (const ask of [grantPoints, spendPoints]) {
        const from = performance.now();
        const { status, text } = await ask(url, { ...user, point_amount: 3 });
        assert.equal(status, 200, text);
        slowestMs = Math.max(slowestMs, performance.now() - from);
        changes++;
      }
      assert.equal((await grant(url, { user_id: crypto.randomUUID() })).status, 200);
    }
  });
  await Promise.all([draining, ...shops]);
  assert.ok(changes > 10 && slowestMs < 5_000, `${changes} changes, the slowest ${slowestMs} ms`);
  assert.deepEqual(await statusesOf(ownerUrl), { DONE: count, PENDING: 1 });
  assert.equal(later.status, 202);
  const [flood] = await kenri.rows(
    `select count(*)::int as granted, count(distinct reservation_id)::int as reservations
     from point_transactions where reservation_id is not null`,
  );
  assert.deepEqual(flood, { granted: count, reservations: count });
  const attempts = await kenri.rows("select from point_reservations where attempt_count > 0");
  assert.equal(attempts.length, 0);
  await assertSums(ownerUrl);
});

Deno.test("a replica that is stopped in a flood gives back what it has claimed, and no attempt is counted", async () => {
  await using kenri = await startEntitlement();
  const { database: { ownerUrl } } = kenri;
  await using _other = await startService("entitlement", kenri.settings);
  await insertReservations(ownerUrl, { count: 4_000, users: 50, fromMs: 300, overMs: 500 });
  await until("they are being granted", async () => "DONE" in await statusesOf(ownerUrl));
  assert.equal(await kenri.service.stop(), 0);
  const rows = await untilAllAre(ownerUrl, ["DONE"]);
  assert.ok(rows.every(({ attempt_count }) => attempt_count === 0));
  await assertSums(ownerUrl);
});
