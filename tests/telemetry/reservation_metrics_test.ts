// The metrics of points and reservations: what callers asked for, what is due, and how late it was
// carried out.
import assert from "node:assert/strict";
import { startService } from "../../tools/servers/service_process.ts";
import { until } from "../../tools/servers/wait.ts";
import { startEntitlement } from "../support/entitlement.ts";
import { samplesOf, type Scraped, scrapeOf, valueOf } from "../support/metrics.ts";
import {
  cancel,
  grantPoints,
  inMs,
  insertReservations,
  reserve,
  reserveRight,
  spendPoints,
} from "../support/points.ts";

const hour = 3_600_000;

Deno.test("requests for points and reservations are counted by their action and their result", async () => {
  await using kenri = await startEntitlement();
  const { url } = kenri;
  await grantPoints(url, {}, "key");
  await grantPoints(url, {}, "key");
  await spendPoints(url, { point_amount: 1_000 });
  await grantPoints(url, { point_amount: -1 });
  const { json } = await reserve(url, { execute_at: inMs(hour) });
  await reserve(url, { execute_at: "2026-01-02T03:04:05" });
  await cancel(url, json.reservation_id);
  await reserveRight(url, { execute_at: inMs(hour) });
  const counted = samplesOf(await scrapeOf(kenri), "entitlement_command_total")
    .filter(({ value }) => value > 0)
    .map(({ labels, value }) => [`${labels["action"]} ${labels["result"]}`, value]);
  assert.deepEqual(Object.fromEntries(counted), {
    "points_grant applied": 1,
    "points_grant replayed": 1,
    "points_grant invalid": 1,
    "points_spend state_conflict": 1,
    "points_reserve applied": 1,
    "points_reserve invalid": 1,
    "points_cancel applied": 1,
    "reserve applied": 1,
  });
});

Deno.test("what is due, late, to come and failed is read from the table", async () => {
  await using kenri = await startEntitlement({ ENTITLEMENT_RESERVATIONS_ENABLED: "false" });
  const { database } = kenri;
  const insert = (count: number, fromMs: number) =>
    insertReservations(database.ownerUrl, { count, users: 1, fromMs, overMs: 1 });
  const failed = await insert(2, -3 * hour);
  await kenri.rows(
    "update point_reservations set status = 'FAILED' where id = any($1)",
    [failed],
  );
  await insert(3, -hour);
  await insert(4, hour);
  const scraped = await scrapeOf(kenri);
  const figure = (name: string) => valueOf(scraped, `entitlement_reservations_${name}`);
  assert.deepEqual(
    ["due_current", "upcoming_current", "failed_current"].map(figure),
    [3, 4, 2],
  );
  const age = figure("due_age_seconds") as number;
  assert.ok(Math.abs(age - 3_600) < 60, `${age}`);
});

Deno.test("lateness is measured from the time of a reservation, or from its request if that was later", async () => {
  await using kenri = await startEntitlement({ ENTITLEMENT_RESERVATIONS_ENABLED: "false" });
  const { ownerUrl } = kenri.database;
  await insertReservations(ownerUrl, { count: 2, users: 2, fromMs: -hour, overMs: 1 });
  await kenri.rows(
    `update point_reservations
     set created_at = case when user_id = 'user-0' then now() - interval '2 h' else now() end`,
  );
  await using worker = await startService("entitlement", {
    ...kenri.settings,
    ENTITLEMENT_RESERVATIONS_ENABLED: "true",
  });
  await until("both are counted", async () => countIn(await scrapeOf(worker)) === 2);
  await reserve(worker.url);
  await until("the third is counted", async () => countIn(await scrapeOf(worker)) === 3);
  const scraped = await scrapeOf(worker);
  const below = (le: string) => valueOf(scraped, `${lateness}_bucket`, { le });
  assert.deepEqual([below("900"), below("+Inf")], [2, 3], "one was an hour late");
  const sum = valueOf(scraped, `${lateness}_sum`) as number;
  assert.ok(Math.abs(sum - 3_600) < 60, `${sum}`);
});

const lateness = "entitlement_reservation_lateness_seconds";
const countIn = (scraped: Scraped) => valueOf(scraped, `${lateness}_count`);
