// Nothing is early and nothing is late, whatever the clock of a service says: P-107. Only the clock of
// the database counts.
import assert from "node:assert/strict";
import type { Settings } from "../../tools/servers/service_process.ts";
import { ask, type Entitlement, startEntitlement } from "../support/entitlement.ts";
import {
  assertOnTime,
  assertSums,
  grantPoints,
  inMs,
  type ReservationRow,
  reserve,
  reserveRight,
  spendPoints,
  untilAllAre,
} from "../support/points.ts";
import { startShifted } from "./shifted_clock.ts";

const thirtyHours = 30 * 3_600_000;
const noPolls: Settings = { ENTITLEMENT_RESERVATIONS_POLL_INTERVAL: "1h" };

for (const [name, ms] of [["forwards", thirtyHours], ["backwards", -thirtyHours]] as const) {
  Deno.test(`P-107: with a clock that is 30 hours off, ${name}, nothing is early and nothing late`, async () => {
    await using kenri = await startEntitlement({ ENTITLEMENT_RESERVATIONS_ENABLED: "false" });
    await using service = await startShifted(settingsOf(kenri), { ms, when: "at once" });
    assertOnTime(await granted(kenri, service.url));
  });

  Deno.test(`P-107: when the clock jumps ${name} by 30 hours in the meantime, nothing is early and nothing late`, async () => {
    await using kenri = await startEntitlement({ ENTITLEMENT_RESERVATIONS_ENABLED: "false" });
    await using service = await startShifted(settingsOf(kenri), { ms, when: "later" });
    assertOnTime(await granted(kenri, service.url, () => service.signal("SIGUSR2")));
  });
}

function settingsOf({ settings }: Entitlement): Settings {
  return { ...settings, ...noPolls, ENTITLEMENT_RESERVATIONS_ENABLED: "true" };
}

Deno.test("P-107: changes of one right that are due together keep their order, whatever the clocks of the replicas that accepted them", async () => {
  await using kenri = await startEntitlement({ ENTITLEMENT_RESERVATIONS_ENABLED: "false" });
  const { url, database: { ownerUrl } } = kenri;
  await using ahead = await startShifted(settingsOf(kenri), { ms: thirtyHours, when: "at once" });
  const execute_at = inMs(3_000);
  const asked = [[ahead.url, "GRANT"], [url, "REVOKE"], [ahead.url, "GRANT"], [url, "REVOKE"]];
  for (const [to = "", action] of asked) {
    const { status, text } = await reserveRight(to, { action, execute_at });
    assert.equal(status, 202, text);
  }
  const rows = await untilAllAre(ownerUrl, ["DONE"]);
  assert.deepEqual(rows.map(({ outcome }) => outcome?.status), [200, 200, 200, 200]);
  const changes = await ask(
    ownerUrl,
    "select action from entitlement_audit order by (detail->>'version')::int",
  );
  assert.deepEqual(changes, asked.map(([, action]) => ({ action })));
});

/** Some of a moment, some of the next seconds, and a right. */
async function granted(
  { database: { ownerUrl } }: Entitlement,
  url: string,
  meanwhile: () => void = () => {},
): Promise<ReservationRow[]> {
  const first = [0, 600, 600, 1_200].map((ms) => reserve(url, { execute_at: inMs(ms) }));
  const right = reserveRight(url, { execute_at: inMs(900) });
  for (const { status, text } of await Promise.all([...first, right])) {
    assert.equal(status, 202, text);
  }
  meanwhile();
  const { status } = await reserve(url, { execute_at: inMs(1_500) });
  assert.equal(status, 202);
  const rows = await untilAllAre(ownerUrl, ["DONE"]);
  assert.equal(rows.length, 6);
  await assertSums(ownerUrl);
  return rows;
}

Deno.test("transactions are later than those before, even if the clock of the database was set back", async () => {
  await using kenri = await startEntitlement({ ENTITLEMENT_RESERVATIONS_ENABLED: "false" });
  const { url, database: { ownerUrl } } = kenri;
  await grantPoints(url, { point_amount: 30 });
  await ask(ownerUrl, "update point_root set updated_at = updated_at + interval '1 hour'");
  // Many at once, so that they share commits; most spends are refused in between.
  const sent = Array.from({ length: 60 }, (_, i) => (i % 3 ? spendPoints : grantPoints)(url));
  const answers = await Promise.all(sent);
  assert.deepEqual([...new Set(answers.map(({ status }) => status))].sort(), [200, 409]);
  const [found] = await ask<{ times: string[] }>(
    ownerUrl,
    "select array_agg(created_at::text order by version) as times from point_transactions",
  );
  const times = found?.times.slice(1) ?? [];
  assert.deepEqual(times, [...new Set(times)].sort());
  await assertSums(ownerUrl);
});
