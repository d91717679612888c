// Several replicas of both services on one stream, and checks of what they have done together.
import { fromBinary } from "@bufbuild/protobuf";
import assert from "node:assert/strict";
import { aggregateKeyOf } from "../../proto/entitlement/aggregate_key.ts";
import { EntitlementEventSchema } from "../../proto/gen/entitlement/v1/entitlement_event_pb.ts";
import type { Change } from "../../tools/load/load.ts";
import {
  bothPlaces,
  type DatabaseUrls,
  type FlowService,
  type Stage,
  startStage,
} from "../../tools/load/stage.ts";
import { ask, countRows } from "../../tools/servers/asking.ts";
import type { Settings } from "../../tools/servers/service_process.ts";
import { freshDatabase } from "./databases.ts";
import { sendsIn } from "./sends.ts";
import { freshStreamNames, natsUrl, readStream } from "./streams.ts";
import { until } from "../../tools/servers/wait.ts";

export interface SystemOptions {
  replicas?: number;
  natsUrl?: string;
  entitlement?: DatabaseUrls; // absent: a migrated one of its own
  notification?: DatabaseUrls;
  settings?: Settings;
}

export async function startSystem(options: SystemOptions = {}): Promise<Stage> {
  await using made = new AsyncDisposableStack();
  const databaseOf = async (service: FlowService) =>
    options[service] ?? made.use(await freshDatabase(service));
  const places = bothPlaces(
    {
      ...freshStreamNames(),
      natsUrl: options.natsUrl ?? natsUrl,
      entitlement: await databaseOf("entitlement"),
      notification: await databaseOf("notification"),
    },
    options.settings,
  );
  const stage = made.use(await startStage(places, options.replicas ?? 2));
  const parts = made.move();
  return { ...stage, [Symbol.asyncDispose]: () => parts.disposeAsync() };
}

/** With the owner's urls, for `deno task migrate`. */
export function migrationSettings({ settings, entitlement, notification }: Stage): Settings {
  return {
    ...settings,
    ENTITLEMENT_MIGRATION_DATABASE_URL: entitlement.ownerUrl,
    NOTIFICATION_MIGRATION_DATABASE_URL: notification.ownerUrl,
  };
}

export function countSent({ owners }: Stage): Promise<number> {
  return countRows(owners.notification, "notifications where status = 'SENT'");
}

export function untilAllSent(system: Stage, changes: Change[], withinMs = 60_000): Promise<void> {
  return until("all are sent", async () => await countSent(system) >= changes.length, withinMs);
}

/** Waits until all changes are sent. Fails if one is lost, sent twice, or out of order anywhere. */
export async function assertDelivered(
  system: Stage,
  changes: Change[],
  withinMs?: number,
): Promise<void> {
  await untilAllSent(system, changes, withinMs);
  await assertKept(system, changes);
  await assertStreamInOrder(system, changes);
  assertSentOnceInOrder(system, changes);
}

/** Invariants 1 to 4: one row of each kind for each acknowledged change, and nothing else. */
export async function assertKept(system: Stage, changes: Change[]): Promise<void> {
  const { entitlement, notification } = system;
  const outbox = await ask<Change & { event_id: string; status: string }>(
    entitlement.ownerUrl,
    `select event_id, aggregate_key as key, (payload->>'version')::int as version, status
     from outbox_events`,
  );
  assert.deepEqual(outbox.map(nameOf).sort(), changes.map(nameOf).sort());
  assert.deepEqual([...new Set(outbox.map(({ status }) => status))], ["PUBLISHED"]);
  const counts = await ask(
    entitlement.ownerUrl,
    `select (select count(*)::int from entitlement_audit) as audited,
       (select sum(version)::int from entitlements) as versions`,
  );
  assert.deepEqual(counts, [{ audited: changes.length, versions: changes.length }]);

  const sent = await ask<{ event_id: string; status: string }>(
    notification.ownerUrl,
    "select event_id, status from notifications",
  );
  const ids = (rows: { event_id: string }[]) => rows.map(({ event_id }) => event_id).sort();
  assert.deepEqual(ids(sent), ids(outbox));
  assert.deepEqual([...new Set(sent.map(({ status }) => status))], ["SENT"]);
  const rest = await ask(
    notification.ownerUrl,
    `select (select count(*)::int from processed_events) as processed,
       (select count(*)::int from notification_dlq) as dead,
       (select count(*)::int from notification_nats_dlq) as given_up`,
  );
  assert.deepEqual(rest, [{ processed: changes.length, dead: 0, given_up: 0 }]);
}

/** The stream may contain an event twice, but its first copy must come after all earlier versions. */
export async function assertStreamInOrder(
  { natsUrl, stream }: Stage,
  changes: Change[],
): Promise<void> {
  const first = new Map<string, Change>();
  for (const { data } of await readStream(natsUrl, stream)) {
    const { eventId, userId, stockKeepingUnit, version } = fromBinary(EntitlementEventSchema, data);
    if (first.has(eventId)) continue;
    first.set(eventId, { key: aggregateKeyOf(userId, stockKeepingUnit), version: Number(version) });
  }
  assertVersionsInOrder([...first.values()], changes);
}

export function assertSentOnceInOrder({ everStarted }: Stage, changes: Change[]): void {
  const sends = everStarted.notification.flatMap(({ log }) => sendsIn(log));
  assertVersionsInOrder(sends.toSorted((a, b) => a.time - b.time), changes);
}

function assertVersionsInOrder(seen: Change[], changes: Change[]): void {
  const last = new Map<string, number>();
  for (const { key, version } of seen) {
    assert.equal(version, (last.get(key) ?? 0) + 1, `the next version of ${key}`);
    last.set(key, version);
  }
  assert.equal(seen.length, changes.length);
}

function nameOf({ key, version }: Change): string {
  return `${key} ${version}`;
}
