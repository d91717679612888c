// Replicas of both services with a database each and one stream, and what must hold of the whole.
import { fromBinary } from "@bufbuild/protobuf";
import assert from "node:assert/strict";
import { aggregateKeyOf } from "../../proto/entitlement/aggregate_key.ts";
import { EntitlementEventSchema } from "../../proto/gen/entitlement/v1/entitlement_event_pb.ts";
import { freshDatabase, type Service } from "./databases.ts";
import { ask } from "./entitlement.ts";
import type { Change } from "../../tools/load/load.ts";
import { durable } from "./notification.ts";
import { sendsIn } from "./sends.ts";
import {
  type ServiceProcess,
  type Settings,
  startService,
} from "../../tools/servers/service_process.ts";
import { freshStreamNames, natsUrl, readStream } from "./streams.ts";
import { until } from "../../tools/servers/wait.ts";

export interface Urls {
  ownerUrl: string;
  serviceUrl: string;
}

export interface SystemOptions {
  replicas?: number;
  natsUrl?: string;
  entitlement?: Urls; // absent: a migrated one of its own
  notification?: Urls;
  settings?: Settings;
}

export interface System extends AsyncDisposable {
  natsUrl: string;
  stream: string;
  subject: string;
  entitlement: Urls;
  notification: Urls;
  settings: Settings;
  replicas: Record<Service, ServiceProcess[]>;
  everStarted: Record<Service, ServiceProcess[]>;
  start(service: Service): Promise<void>;
  stop(service?: Service): Promise<void>;
  // One after the other, each ready before the next is stopped.
  restart(service: Service): Promise<void>;
}

export async function startSystem(options: SystemOptions = {}): Promise<System> {
  const names = freshStreamNames();
  const made: AsyncDisposable[] = [];
  const databaseOf = async (service: Service): Promise<Urls> => {
    const given = options[service];
    if (given) return given;
    const database = await freshDatabase(service);
    made.push(database);
    return database;
  };
  const entitlement = await databaseOf("entitlement");
  const notification = await databaseOf("notification");
  const nats = options.natsUrl ?? natsUrl;
  const settings: Settings = {
    ENTITLEMENT_DATABASE_URL: entitlement.serviceUrl,
    ENTITLEMENT_NATS_STREAM: names.stream,
    ENTITLEMENT_NATS_SUBJECT: names.subject,
    NOTIFICATION_DATABASE_URL: notification.serviceUrl,
    NOTIFICATION_NATS_STREAM: names.stream,
    NOTIFICATION_NATS_SUBJECT: names.subject,
    NOTIFICATION_NATS_DURABLE: durable,
    NATS_URL: nats,
    ...options.settings,
  };
  const replicas: System["replicas"] = { entitlement: [], notification: [] };
  const everStarted: System["everStarted"] = { entitlement: [], notification: [] };
  const ports: Record<Service, string[]> = { entitlement: [], notification: [] };

  async function startOne(service: Service, number: number): Promise<void> {
    const port = ports[service][number] ?? "0";
    const process = await startService(service, {
      ...settings,
      [`${service.toUpperCase()}_HTTP_PORT`]: port,
      HOSTNAME: `${service}-${number}`,
    });
    ports[service][number] = new URL(process.url).port;
    replicas[service][number] = process;
    everStarted[service].push(process);
  }

  async function start(service: Service): Promise<void> {
    const numbers = Array.from({ length: options.replicas ?? 2 }, (_, number) => number);
    await Promise.all(numbers.map((number) => startOne(service, number)));
  }

  async function stop(service?: Service): Promise<void> {
    const all = service ? replicas[service] : [...replicas.entitlement, ...replicas.notification];
    const codes = await Promise.all(all.map((process) => process.stop()));
    assert.deepEqual(codes, all.map(() => 0));
  }

  async function restart(service: Service): Promise<void> {
    for (const [number, process] of replicas[service].entries()) {
      assert.equal(await process.stop(), 0);
      await startOne(service, number);
      await untilReady(replicas[service][number] as ServiceProcess);
    }
  }

  await Promise.all([start("entitlement"), start("notification")]);
  return {
    ...names,
    natsUrl: nats,
    entitlement,
    notification,
    settings,
    replicas,
    everStarted,
    start,
    stop,
    restart,
    async [Symbol.asyncDispose]() {
      const all = [...everStarted.entitlement, ...everStarted.notification];
      await Promise.all(all.map((process) => process.kill()));
      await Promise.all(made.map((database) => database[Symbol.asyncDispose]()));
    },
  };
}

/** With the urls of the owner, for `deno task migrate`. */
export function migrationSettings({ settings, entitlement, notification }: System): Settings {
  return {
    ...settings,
    ENTITLEMENT_MIGRATION_DATABASE_URL: entitlement.ownerUrl,
    NOTIFICATION_MIGRATION_DATABASE_URL: notification.ownerUrl,
  };
}

export function untilReady({ url }: ServiceProcess): Promise<void> {
  return until("it is ready", () => isReady(url));
}

async function isReady(url: string): Promise<boolean> {
  const answer = await fetch(`${url}/readyz`);
  await answer.body?.cancel();
  return answer.status === 200;
}

export function urlsOf(processes: ServiceProcess[]): string[] {
  return processes.map(({ url }) => url);
}

export async function countSent({ notification }: System): Promise<number> {
  const [row] = await ask<{ count: number }>(
    notification.ownerUrl,
    "select count(*)::int as count from notifications where status = 'SENT'",
  );
  return row?.count ?? 0;
}

export function untilAllSent(system: System, changes: Change[], withinMs = 60_000): Promise<void> {
  return until("all are sent", async () => await countSent(system) >= changes.length, withinMs);
}

/** Invariants 1 to 4: one row of each kind for each acknowledged change, and nothing else. */
export async function assertKept(system: System, changes: Change[]): Promise<void> {
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

/** The stream may hold a message twice, but a version first comes after those before it. */
export async function assertStreamInOrder(
  { natsUrl, stream }: System,
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

export function assertSentOnceInOrder({ everStarted }: System, changes: Change[]): void {
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
