// Points are reconciled like changes of rights: their events are found by the audit.
import assert from "node:assert/strict";
import { republishUnreceived } from "../../entitlement/reconciliation/republish_unreceived.ts";
import { openDatabase } from "../../shared/postgres/postgres.ts";
import { newOperation } from "../../shared/operators/operations.ts";
import { grant } from "../support/api.ts";
import { startReplicas } from "../support/changes.ts";
import { freshDatabase } from "../support/databases.ts";
import { ask } from "../support/entitlement.ts";
import { outcomesOf, untilSent } from "../support/notification.ts";
import { storedEvents } from "../support/outbox.ts";
import { operate, startStack } from "../support/stack.ts";
import { natsUrl } from "../support/streams.ts";
import { until } from "../../tools/servers/wait.ts";
import { all, lose, path, shortWindow } from "./reconciled.ts";
import { grantPoints, reserve, spendPoints, untilAllAre } from "../support/points.ts";

const events = `select event_id, event_type, aggregate_key, payload, created_at::text, status
  from outbox_events order by event_id`;

Deno.test("events of points that the outbox has deleted are written again from the audit, as they were", async () => {
  await using place = await freshDatabase("entitlement");
  await using replicas = await startReplicas(1, place.serviceUrl);
  const { ownerUrl, serviceUrl } = place;
  const [url = ""] = replicas.urls;
  const user = { user_id: "a:b%", unit: "gold" };
  await grantPoints(url, user);
  await spendPoints(url, { ...user, point_amount: 3 });
  await reserve(url, user);
  await grant(url, { user_id: "a:b%", stock_keeping_unit: "points:gold" });
  await untilAllAre(ownerUrl, ["DONE"]);
  const before = await ask(ownerUrl, events);
  assert.equal(before.length, 4);
  await ask(ownerUrl, "delete from outbox_events");
  const database = openDatabase(serviceUrl, "test");
  try {
    const audited = await ask<Parameters<typeof republishUnreceived>[1][number]>(
      ownerUrl,
      `select audit_id as event_id, user_id, stock_keeping_unit, 1 as version,
         to_char(occurred_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as occurred_at
       from entitlement_audit`,
    );
    const operation = newOperation({ who: "reconciliation", reason: "not received" });
    assert.equal((await republishUnreceived(database, audited, operation)).length, 4);
  } finally {
    await database.end();
  }
  assert.deepEqual(await ask(ownerUrl, events), before);
});

Deno.test("events of points that were not received are found, listed by their unit, and republished", async () => {
  await using stack = await startStack(shortWindow);
  const { entitlement, place } = stack;
  await grantPoints(entitlement.url, { unit: "gold" });
  await spendPoints(entitlement.url, { unit: "gold" });
  await reserve(entitlement.url);
  await untilSent(place, 3);
  await new Promise((over) => setTimeout(over, 150)); // the duplicate window
  await lose(stack, "points:ann:gold", 2);
  await lose(stack, "points:ann:points", 1);
  const { states, unreceived } = await operate(entitlement.url, path, all);
  assert.deepEqual(states, { RECEIVED: 1, MISSING: 2 });
  const found = unreceived.map((
    { stock_keeping_unit, version, mended }: Record<string, unknown>,
  ) => `${stock_keeping_unit} ${version} ${mended}`);
  assert.deepEqual(found.sort(), ["points:gold 2 true", "points:points 1 true"]);
  await untilSent(place, 3);
  assert.deepEqual((await operate(entitlement.url, path, all)).states, { RECEIVED: 3 });
});

Deno.test("a replay publishes events of points again, in order, and none is received twice", async () => {
  await using stack = await startStack(shortWindow);
  const { entitlement, notification, place } = stack;
  for (let i = 0; i < 4; i++) await grantPoints(entitlement.url);
  await untilSent(place, 4);
  await new Promise((over) => setTimeout(over, 150)); // the duplicate window
  const range = { from: "2026-01-01T00:00:00Z", to: new Date().toISOString() };
  const { replayed } = await operate(entitlement.url, "/operations/entitlement/replay", range);
  assert.equal(replayed, 4);
  await until(
    "all are received again",
    async () => await outcomesOf(notification, "duplicate") === 4,
  );
  const ids = (await storedEvents(natsUrl, entitlement.stream)).map(({ id }) => id);
  assert.deepEqual(ids.slice(4), ids.slice(0, 4));
});
