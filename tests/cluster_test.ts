// Three of everything: relays, consumers, and nodes of NATS, of which one after the other is killed
// and started again while clients go on. What is checked are the invariants of the whole system.
import { fromBinary } from "@bufbuild/protobuf";
import assert from "node:assert/strict";
import { EntitlementEventSchema } from "../proto/gen/entitlement/v1/entitlement_event_pb.ts";
import { type NatsCluster, startNatsCluster } from "../tools/servers/nats_cluster.ts";
import { type ChangeRequest, sendUntilAnswered } from "./changes.ts";
import { freshDatabase, type Service, type TestDatabase } from "./databases.ts";
import { ask } from "./entitlement.ts";
import { type ServiceProcess, startService } from "./services.ts";
import { freshStreamNames, readStream, withNats } from "./streams.ts";
import { until } from "./wait.ts";

const clients = 8;
const thinkMs = 40; // between two changes of one client, so that the test machine keeps up
const changesPerOutage = 100;
const electedWithinMs = 120_000; // NATS takes up to 9 s for an election, and there may be several

Deno.test("with three of each, any node of NATS may die: nothing is lost, doubled or out of order", async () => {
  await using cluster = await startNatsCluster();
  await using stack = await startThreeOfEach(cluster);
  const load = startLoad(stack.entitlements.map(({ url }) => url));
  for (const node of cluster.nodes) {
    await load.goesOn(changesPerOutage);
    await node.kill();
    await load.goesOn(changesPerOutage);
    const made = load.changes.length;
    await until("two nodes carry on", async () => await countSent(stack) >= made, electedWithinMs);
    await node.start();
    await until(
      "it has caught up",
      () => everyNodeIsCurrent(cluster, stack.stream),
      electedWithinMs,
    );
  }
  await load.stop();
  const made = load.changes.length;
  await until("all are sent", async () => await countSent(stack) >= made, electedWithinMs);

  await assertKept(stack, load.changes);
  await assertStreamInOrder(stack, load.changes);
  assertSentOnceInOrder(stack, load.changes);
  const ended = [...stack.entitlements, ...stack.notifications].map((service) => service.stop());
  assert.deepEqual(await Promise.all(ended), [0, 0, 0, 0, 0, 0]);
});

interface Stack extends AsyncDisposable {
  natsUrl: string;
  stream: string;
  entitlement: TestDatabase;
  notification: TestDatabase;
  entitlements: ServiceProcess[];
  notifications: ServiceProcess[];
}

async function startThreeOfEach({ url }: NatsCluster): Promise<Stack> {
  const { stream, subject } = freshStreamNames();
  const entitlement = await freshDatabase("entitlement");
  const notification = await freshDatabase("notification");
  const start = (name: Service, { serviceUrl }: TestDatabase) =>
    Promise.all([1, 2, 3].map((number) =>
      startService(name, {
        ENTITLEMENT_DATABASE_URL: serviceUrl,
        ENTITLEMENT_NATS_STREAM: stream,
        ENTITLEMENT_NATS_SUBJECT: subject,
        NOTIFICATION_DATABASE_URL: serviceUrl,
        NOTIFICATION_NATS_STREAM: stream,
        NOTIFICATION_NATS_SUBJECT: subject,
        NOTIFICATION_NATS_DURABLE: "notifications",
        NATS_URL: url,
        NATS_REPLICAS: "3",
        HOSTNAME: `${name}-${number}`,
      })
    ));
  const entitlements = await start("entitlement", entitlement);
  const notifications = await start("notification", notification);
  return {
    natsUrl: url,
    stream,
    entitlement,
    notification,
    entitlements,
    notifications,
    async [Symbol.asyncDispose]() {
      await Promise.all([...entitlements, ...notifications].map((service) => service.kill()));
      await Promise.all([entitlement.drop(), notification.drop()]);
    },
  };
}

interface Change {
  key: string; // user and item, as aggregate_key has them
  version: number;
}

interface Load {
  changes: Change[]; // acknowledged ones
  goesOn(more: number): Promise<void>;
  stop(): Promise<void>;
}

// Each client grants and revokes what is its own, so it knows which version the answer must have.
function startLoad(urls: string[]): Load {
  const changes: Change[] = [];
  const failures: unknown[] = [];
  let stopped = false;
  const work = async (client: number) => {
    for (let count = 0; !stopped; count++) {
      const sku = `sku-${count % 2}`;
      const version = Math.floor(count / 2) + 1;
      const request: ChangeRequest = {
        key: `client-${client}-${count}`,
        action: version % 2 === 1 ? "GRANT" : "REVOKE",
        user: `user-${client}`,
        sku,
        reason: "r",
        purchase: `p-${count}`,
      };
      const turned = [...urls.slice(client % 3), ...urls.slice(0, client % 3)];
      // An impatient client sends the same at once to another replica.
      const sent = [turned, ...(count % 5 === 0 ? [turned.toReversed()] : [])];
      const answers = await Promise.all(sent.map((order) => sendUntilAnswered(order, request)));
      for (const attempts of answers) {
        const { status, body } = attempts.at(-1)?.answer ?? { status: 0, body: "{}" };
        assert.equal(status, 200, body);
        assert.equal(JSON.parse(body).version, version);
      }
      changes.push({ key: `${request.user}:${sku}`, version });
      await new Promise((again) => setTimeout(again, thinkMs));
    }
  };
  const working = Array.from(
    { length: clients },
    (_, client) => work(client).catch((error) => failures.push(error)),
  );
  const check = () => {
    if (failures.length > 0) throw failures[0];
  };
  return {
    changes,
    async goesOn(more) {
      const enough = changes.length + more;
      await until("changes are acknowledged", () => {
        check();
        return changes.length >= enough;
      }, electedWithinMs);
    },
    async stop() {
      stopped = true;
      await Promise.all(working);
      check();
    },
  };
}

async function countSent({ notification }: Stack): Promise<number> {
  const [row] = await ask<{ count: number }>(
    notification.ownerUrl,
    "select count(*)::int as count from notifications where status = 'SENT'",
  );
  return row?.count ?? 0;
}

async function everyNodeIsCurrent({ url, nodes }: NatsCluster, stream: string): Promise<boolean> {
  return await withNats(url, async (connection) => {
    const manager = await connection.jetstreamManager();
    const { cluster } = await manager.streams.info(stream);
    const { cluster: consumers } = await manager.consumers.info(stream, "notifications");
    return [cluster, consumers].every((group) =>
      group?.leader && group.replicas?.length === nodes.length - 1 &&
      group.replicas.every(({ current, offline }) => current && !offline)
    );
  }).catch(() => false);
}

// Invariants 1 to 4: one row of each kind for each acknowledged change, and nothing else.
async function assertKept({ entitlement, notification }: Stack, changes: Change[]): Promise<void> {
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

// The stream may hold a message twice, but a version first comes after those before it.
async function assertStreamInOrder({ natsUrl, stream }: Stack, changes: Change[]): Promise<void> {
  const first = new Map<string, Change>();
  for (const { data } of await readStream(natsUrl, stream)) {
    const { eventId, userId, stockKeepingUnit, version } = fromBinary(EntitlementEventSchema, data);
    if (first.has(eventId)) continue;
    first.set(eventId, { key: `${userId}:${stockKeepingUnit}`, version: Number(version) });
  }
  assertVersionsInOrder([...first.values()], changes);
}

function assertSentOnceInOrder({ notifications }: Stack, changes: Change[]): void {
  const lines = notifications.flatMap(({ log }) => log)
    .filter(({ notification_id }) => notification_id !== undefined)
    .sort((a, b) => String(a["time"]).localeCompare(String(b["time"])));
  const sends = lines.map(({ user_id, stock_keeping_unit, version }) => ({
    key: `${user_id}:${stock_keeping_unit}`,
    version: Number(version),
  }));
  assertVersionsInOrder(sends, changes);
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
