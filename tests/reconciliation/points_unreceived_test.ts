// Points are reconciled like changes of rights: their events are found by the audit.
import assert from "node:assert/strict";
import { republishUnreceived } from "../../entitlement/reconciliation/republish_unreceived.ts";
import { openDatabase } from "../../shared/postgres/postgres.ts";
import { newOperation } from "../../shared/operators/operations.ts";
import { grant } from "../support/api.ts";
import { startReplicas } from "../support/changes.ts";
import { freshDatabase } from "../support/databases.ts";
import { ask } from "../support/entitlement.ts";
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
