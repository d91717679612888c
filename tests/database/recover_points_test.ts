// deno task recover makes transactions of points from their events, and what was reserved for them is
// done.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import type { PointsEventFields } from "../../proto/points/decode.ts";
import { encodePointsEvent } from "../../proto/points/encode.ts";
import { type ServiceProcess, startService } from "../../tools/servers/service_process.ts";
import { until } from "../../tools/servers/wait.ts";
import { runShell } from "../operators/runbook.ts";
import { ops } from "../operators/ops.ts";
import { grant, revoke } from "../support/api.ts";
import { freshDatabase, ownDatabase } from "../support/databases.ts";
import { ask, settingsOf } from "../support/entitlement.ts";
import {
  assertSums,
  grantPoints,
  inMs,
  reserve,
  reserveRight,
  spendPoints,
  statusesOf,
  transactionRows,
} from "../support/points.ts";
import { type Message, publish } from "../support/events.ts";
import { freshStreamNames, makeStream, natsUrl } from "../support/streams.ts";
import { backUp } from "./backups.ts";

const key = "k".repeat(32);
const noWorker = { ENTITLEMENT_RESERVATIONS_ENABLED: "false" };

Deno.test("transactions after the backup are recovered, and no reservation is carried out twice", async () => {
  await using place = await ownDatabase("entitlement");
  const { ownerUrl } = place;
  const settings = {
    ...settingsOf(place.serviceUrl),
    ENTITLEMENT_SEAL_KEY: key,
    ENTITLEMENT_MIGRATION_DATABASE_URL: ownerUrl,
    ENTITLEMENT_DEBUG_ENABLED: "true",
  };
  const before = await startService("entitlement", { ...settings, ...noWorker });
  await grantPoints(before.url);
  const due = await reserved(before, {});
  await reserved(before, { unit: "gold" });
  const lost = await reserved(before, { user_id: "bob", execute_at: inMs(1_500) });
  const later = await reserved(before, { execute_at: inMs(3_600_000) });
  await reserveRight(before.url, { user_id: "eve" });
  await untilPublished(ownerUrl);
  await before.stop();
  await using backup = await backUp(place.server);

  const after = await startService("entitlement", settings);
  await reserved(after, { user_id: "cid" }); // the backup does not have it
  await until("they are done", async () => (await statusesOf(ownerUrl))["DONE"] === 5);
  await revoke(after.url, { user_id: "eve" });
  await spendPoints(after.url, { point_amount: 5 });
  await grantPoints(after.url, { user_id: "dan", point_amount: 3 }, "dans-key");
  await grant(after.url, { user_id: "ann", stock_keeping_unit: "points:gold" });
  await untilPublished(ownerUrl);
  await after.stop();
  const content = await contentOf(ownerUrl);
  assert.equal(content.transactions.length, 7);

  await backup.restore();
  assert.equal((await transactionRows(ownerUrl)).length, 1);
  const said = await runShell("deno task --quiet recover", settings, 0);
  assert.match(said, /, 9 changes were recovered/);
  assert.deepEqual(await contentOf(ownerUrl), content);
  assert.deepEqual(await statusesOf(ownerUrl), { DONE: 4, PENDING: 1 });
  // Nobody knows any more who reserved it.
  await ask(ownerUrl, "update point_transactions set reservation_id = null where user_id = 'cid'");
  await assertSums(ownerUrl);
  assert.match(await runShell("deno task --quiet recover", settings, 0), /\b0 changes were/);

  const again = await startService("entitlement", settings);
  const services = { entitlement: again, notification: again };
  const { code, output } = await ops(services, "audit", "verify");
  assert.equal(code, 0, output);
  // As if `done` had been lost as well: the key of the transaction decides.
  await ask(
    ownerUrl,
    `update point_reservations set status = 'PENDING', transaction_id = null, done_at = null
     where id = any($1)`,
    [[lost, due]],
  );
  await until("they are done", async () => (await statusesOf(ownerUrl))["DONE"] === 4);
  assert.equal((await transactionRows(ownerUrl)).length, 7);
  const { json } = await grantPoints(again.url, { user_id: "dan" }, "dans-key");
  assert.equal(json.balance, 13, "the keys of requests are not in the stream");
  const rights = await ask(ownerUrl, "select status, version::int from entitlements order by 1");
  assert.deepEqual(rights, [{ status: "ACTIVE", version: 1 }, { status: "REVOKED", version: 2 }]);
  const [waiting] = await ask<{ id: string }>(
    ownerUrl,
    "select id from point_reservations where status = 'PENDING'",
  );
  assert.equal(waiting?.id, later);
  await again.stop();
});

async function reserved({ url }: ServiceProcess, fields: Record<string, unknown>): Promise<string> {
  const { status, json, text } = await reserve(url, fields);
  assert.equal(status, 202, text);
  return json.reservation_id;
}

async function untilPublished(ownerUrl: string): Promise<void> {
  await until("all is published", async () => {
    const left = await ask(ownerUrl, "select from outbox_events where status <> 'PUBLISHED'");
    return left.length === 0;
  });
}

async function contentOf(ownerUrl: string) {
  const [transactions, balances, events] = await Promise.all([
    transactionRows(ownerUrl),
    ask(
      ownerUrl,
      `select user_id, unit, balance, version, updated_at::text
       from point_root order by user_id, unit`,
    ),
    ask(
      ownerUrl,
      `select event_id, event_type, aggregate_key, payload, created_at::text
       from outbox_events order by event_id`,
    ),
  ]);
  return { transactions, balances, events };
}

function messageOf(fields: Partial<PointsEventFields>, sealedAs?: string): Message {
  const event_id = crypto.randomUUID();
  const body = encodePointsEvent(event_id, {
    ...{ event_type: "PointsAdded", occurred_at: "2026-01-02T03:04:05.678901Z", user_id: "ann" },
    ...{ unit: "gold", point_amount: 10, balance: 10, version: 1, source: "s", source_id: "1" },
    ...{ transaction_id: event_id, reservation_id: null, trace_id: "t", ...fields },
  });
  const headers = { "Nats-Msg-Id": event_id, event_type: "PointsAdded" };
  if (sealedAs === undefined) return { body, headers };
  const seal = createHmac("sha256", key).update(`kenri ${sealedAs}\n`).update(body).digest("hex");
  return { body, headers: { ...headers, seal } };
}

Deno.test("an event of points that can't be proven adds none, until it is accepted", async () => {
  await using database = await freshDatabase("entitlement");
  const names = freshStreamNames();
  await makeStream(natsUrl, names);
  const second = { version: 2, balance: 20 };
  const points = "points event";
  await publish(natsUrl, names.subject, [
    messageOf({ user_id: "bare" }),
    messageOf({ user_id: "as-entitlement" }, "event"),
    messageOf({ user_id: "gap", version: 3, balance: 30 }, points),
    messageOf({ user_id: "sum" }, points),
    messageOf({ user_id: "sum", ...second, balance: 21 }, points),
    { ...messageOf({}, points), headers: { event_type: "EntitlementGranted" } },
    messageOf({}, points),
  ]);
  await publish(natsUrl, names.subject, [messageOf(second, points)]);
  const recover = (flags: string, code: number) =>
    runShell(`deno task --quiet recover ${flags}`, {
      ...settingsOf(database.serviceUrl, names),
      ENTITLEMENT_SEAL_KEY: key,
      ENTITLEMENT_MIGRATION_DATABASE_URL: database.ownerUrl,
    }, code);
  const balances = async () =>
    (await ask<{ has: string }>(
      database.ownerUrl,
      "select user_id || ' ' || balance || ' ' || version as has from point_root order by 1",
    )).map(({ has }) => has);
  const said = await recover("", 1);
  assert.deepEqual(await balances(), ["ann 20 2", "sum 10 1"]);
  assert.match(said, /8 events were read, 3 changes were recovered/);
  assert.match(said, /PointsAdded "bare" 10 "gold" version 1: it has no seal/);
  assert.match(said, /"as-entitlement" 10 "gold" version 1: its seal was not made with the key/);
  assert.match(said, /"gap" 10 "gold" version 3: a version before it is missing/);
  assert.match(said, /4 changes can't be proven and were not recovered/);
  assert.match(await recover("--accept all", 0), /4 changes were recovered/);
  assert.deepEqual(await balances(), [
    ...["ann 20 2", "as-entitlement 10 1", "bare 10 1", "gap 30 3", "sum 21 2"],
  ]);
});
