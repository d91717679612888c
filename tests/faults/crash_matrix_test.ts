// A process dies between two effects, at every such point. The next start, or another replica,
// continues from what it left behind, and the invariants hold.
import assert from "node:assert/strict";
import { accountPoints } from "./crash/account_points.ts";
import { openAccounts } from "./crash/account_stage.ts";
import { changePoints } from "./crash/change_points.ts";
import { deliveryPoints } from "./crash/delivery_points.ts";
import { matchPoints } from "./crash/match_points.ts";
import { openMatches } from "./crash/match_stage.ts";
import { migrationPoints } from "./crash/migration_points.ts";
import { orderPoints } from "./crash/order_points.ts";
import { openOrders } from "./crash/order_stage.ts";
import { page, rowsOf, tables } from "./crash/page.ts";
import { playOut } from "./crash/play.ts";
import { playOutMigration } from "./crash/play_migration.ts";
import { receivePoints } from "./crash/receive_points.ts";
import { openReminders, reminderPoints } from "./crash/reminder_points.ts";
import { reservationPoints } from "./crash/reservation_points.ts";
import { retentionPoints } from "./crash/retention_points.ts";
import { openStage } from "./crash/stage.ts";

for (
  const point of [
    ...changePoints,
    ...receivePoints,
    ...deliveryPoints,
    ...reservationPoints,
    ...retentionPoints,
  ]
) {
  Deno.test(`${point.of} dies ${point.dies}`, () => playOut(point, openStage));
}

for (const point of reminderPoints) {
  Deno.test(`${point.of} dies ${point.dies}`, () => playOut(point, openReminders));
}

for (const point of orderPoints) {
  Deno.test(`W-113: with orders, notification dies ${point.dies}`, () =>
    playOut(point, openOrders));
}

for (const point of accountPoints) {
  Deno.test(`A-105: account dies ${point.dies}`, () => playOut(point, openAccounts));
}

for (const point of matchPoints) {
  Deno.test(`M-108: matchmaking dies ${point.dies}`, () => playOut(point, openMatches));
}

for (const point of migrationPoints) {
  Deno.test(`a migration dies ${point.dies}`, () => playOutMigration(point));
}

Deno.test("the page shows every crash point of the tests", async () => {
  assert.deepEqual(rowsOf(await Deno.readTextFile(page)), rowsOf(tables()));
});
