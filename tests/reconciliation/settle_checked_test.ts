// What follows from a check of received events: which events stay open, which are closed, and how
// often an event is republished before an operator has to look.
import assert from "node:assert/strict";
import type { Checked, State } from "../../entitlement/reconciliation/check.ts";
import { settleChecked } from "../../entitlement/reconciliation/settle.ts";
import type { Database } from "../../shared/postgres/postgres.ts";
import { Wakeup } from "../../shared/process/signals.ts";
import { openFresh } from "../support/databases.ts";
import { ask } from "../support/entitlement.ts";
import { insertEvents } from "../support/outbox.ts";

const limits = { who: "reconciliation", reason: "not received", maxPerEvent: 3 };

function checked(event_id: string, state: State): Checked {
  const occurred_at = "2026-11-02T03:04:05.000000Z";
  return {
    event: { event_id, occurred_at, user_id: "ann", stock_keeping_unit: "book", version: 1 },
    state,
  };
}

function settle(database: Database, ...page: Checked[]): Promise<Set<string>> {
  return settleChecked({ database, wakeRelay: new Wakeup() }, page, limits);
}

Deno.test("an event is republished as often as allowed, and then stays listed for an operator", async () => {
  await using place = await openFresh("entitlement");
  const { database, ownerUrl } = place;
  const [id = ""] = await insertEvents(ownerUrl, [{ key: "ann:book", version: 1 }]);
  const republished: number[] = [];
  for (let i = 0; i < 5; i++) {
    await ask(ownerUrl, "update outbox_events set status = 'PUBLISHED', published_at = now()");
    republished.push((await settle(database, checked(id, "MISSING"))).size);
  }
  assert.deepEqual(republished, [1, 1, 1, 0, 0]);
  const open = await ask(ownerUrl, "select event_id, state, mends from unreceived_events");
  assert.deepEqual(open, [{ event_id: id, state: "MISSING", mends: 3 }]);
});

Deno.test("a dead event stays open without being republished; a received or too old one is closed", async () => {
  await using place = await openFresh("entitlement");
  const { database, ownerUrl } = place;
  const ids = await insertEvents(
    ownerUrl,
    [1, 2, 3, 4].map((i) => ({ key: `user-${i}:book`, version: 1 })),
  );
  const [dead = "", received = "", old = "", onItsWay = ""] = ids;
  await ask(ownerUrl, "update outbox_events set status = 'PUBLISHED', published_at = now()");
  await settle(database, ...ids.map((id) => checked(id, "MISSING")));
  await ask(ownerUrl, "update outbox_events set status = 'PUBLISHED', published_at = now()");
  const republished = await settle(
    database,
    checked(dead, "DEAD"),
    checked(received, "RECEIVED"),
    checked(old, "TOO_OLD"),
    checked(onItsWay, "IN_FLIGHT"),
  );
  assert.deepEqual(republished, new Set());
  const open = await ask(ownerUrl, "select event_id, state from unreceived_events order by state");
  assert.deepEqual(open, [
    { event_id: dead, state: "DEAD" },
    { event_id: onItsWay, state: "MISSING" },
  ]);
});
