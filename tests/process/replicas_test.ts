// Replicas share one durable consumer and one database: no notification is duplicated or lost, and
// those of one user and item are sent in the order of their versions.
import assert from "node:assert/strict";
import { aggregateKeyOf } from "../../proto/entitlement/aggregate_key.ts";
import { withClient } from "../support/databases.ts";
import { type Event, eventOf, eventsOf } from "../support/events.ts";
import {
  advisoriesSent,
  allSent,
  consumerInfo,
  countsOf,
  freshPlace,
  notificationsOf,
  outcomesOf,
  publishTo,
  startNotification,
  untilAllAcked,
  untilSent,
} from "../support/notification.ts";
import type { Place } from "../../tools/load/stage.ts";
import { assertInOrder, sendsIn } from "../support/sends.ts";
import type { ServiceProcess, Settings } from "../../tools/servers/service_process.ts";
import { until } from "../../tools/servers/wait.ts";

const brief = { NOTIFICATION_NATS_ACK_WAIT: "2s", NOTIFICATION_DELIVERY_LEASE: "2s" };

Deno.test("three replicas share the work, and each event is handled and sent once, in order", async () => {
  await using place = await freshPlace();
  await using replicas = await startReplicas(place, 3, { NOTIFICATION_DELIVERY_BATCH_SIZE: "50" });
  const events = hotAndColdEvents();
  await publishTo(place, events);
  await untilSent(place, events.length);
  await untilAllAcked(place);
  assert.deepEqual(await countsOf(place), allSent(events.length));
  assert.equal((await consumerInfo(place)).delivered.consumer_seq, events.length);
  const handled = await Promise.all(
    replicas.processes.map((process) => outcomesOf(process, "handled")),
  );
  assert.equal(handled.reduce((sum, count) => sum + count), events.length);
  assert.ok(handled.filter((count) => count > 0).length > 1, `one did it all: ${handled}`);
  const sends = replicas.processes.map(({ log }) => sendsIn(log));
  assert.equal(sends.flat().length, events.length, "each was sent once");
  assert.ok(sends.filter(({ length }) => length > 0).length > 1, "one sent all");
  assertInOrder(sends, events.map(keyAndVersion));
});

Deno.test("the other replicas take over the work of a killed one", async () => {
  await using place = await freshPlace();
  await using replicas = await startReplicas(place, 3, brief);
  const events = hotAndColdEvents();
  await publishTo(place, events.slice(0, 1_200));
  await until("they are at it", async () => (await countsOf(place)).notifications > 300);
  await replicas.processes[0]?.kill();
  await publishTo(place, events.slice(1_200));
  await untilSent(place, events.length);
  await untilAllAcked(place);
  assert.deepEqual(await countsOf(place), allSent(events.length));
  assert.deepEqual(await advisoriesSent(place), { MAX_DELIVERIES: 0, MSG_TERMINATED: 0 });
  assertInOrder(replicas.processes.map(({ log }) => sendsIn(log)), events.map(keyAndVersion));
});

Deno.test("the other replicas do the work of one that is frozen for longer than lease and ack wait", async () => {
  await using place = await freshPlace();
  await using replicas = await startReplicas(place, 2, brief);
  const [frozen] = replicas.processes;
  const events = hotAndColdEvents();
  await publishTo(place, events.slice(0, 1_000));
  await until("they are at it", async () => (await countsOf(place)).notifications > 300);
  frozen?.signal("SIGSTOP");
  await publishTo(place, events.slice(1_000));
  await untilSent(place, events.length);
  frozen?.signal("SIGCONT");
  await untilAllAcked(place);
  assert.equal(await frozen?.stop(), 0);
  assert.deepEqual(await countsOf(place), allSent(events.length));
  const rows = await notificationsOf(place);
  assert.ok(rows.every(({ attempt_count }) => attempt_count <= 1), "a lease ran out at most once");
});

// Version 2 waits for its predecessor. The wait is ended after the commit of version 1 and before
// its ack, so a lock on the row of version 2 stops the service exactly there.
Deno.test("after a kill between commit and ack the message is a duplicate, and is acked", async () => {
  await using place = await freshPlace();
  const first = await startNotification(place, {
    ...brief,
    NOTIFICATION_DELIVERY_PREDECESSOR_WAIT: "1h",
  });
  await publishTo(place, [eventOf({ version: 2 })]);
  await until("version 2 is stored", async () => (await countsOf(place)).notifications === 1);
  await untilAllAcked(place);
  await withClient(place.ownerUrl, async (owner) => {
    await owner.query("begin");
    await owner.query("select from notifications for update");
    await publishTo(place, [eventOf({ version: 1 })]);
    await until("version 1 is committed", async () => (await countsOf(place)).notifications === 2);
    await first.kill();
    await owner.query( // PostgreSQL would finish what the dead client has asked for
      `select pg_terminate_backend(pid) from pg_stat_activity
       where datname = current_database() and application_name = 'notification'`,
    );
    await owner.query("commit");
  });
  assert.equal((await consumerInfo(place)).num_ack_pending, 1);

  await using second = await startNotification(place, brief);
  await untilAllAcked(place);
  await untilSent(place, 2);
  assert.deepEqual(await countsOf(place), allSent(2));
  assert.equal(await outcomesOf(second, "duplicate"), 1);
  assert.equal(await outcomesOf(second, "handled"), 0);
  // The first replica may have sent version 1 just before it was killed.
  const sends = [...sendsIn(first.log), ...sendsIn(second.log)];
  assert.deepEqual(sends.map(({ version }) => version), [1, 2]);
});

// Two hot keys with 300 versions each, and 1,400 events of 350 cold ones.
function hotAndColdEvents(): Event[] {
  const hot = eventsOf({ users: 2, versions: 300 });
  const cold = eventsOf({ users: 350, versions: 4 }).map((event) => ({
    ...event,
    stockKeepingUnit: "cold",
  }));
  return cold.flatMap((event, i) => i < hot.length ? [event, hot[i] as Event] : [event]);
}

const keyAndVersion = ({ userId, stockKeepingUnit, version }: Event) => ({
  key: aggregateKeyOf(userId, stockKeepingUnit),
  version,
});

interface Replicas extends AsyncDisposable {
  processes: ServiceProcess[];
}

async function startReplicas(place: Place, count: number, more: Settings): Promise<Replicas> {
  const starting = Array.from({ length: count }, () => startNotification(place, more));
  const processes = await Promise.all(starting);
  return {
    processes,
    [Symbol.asyncDispose]: async () => {
      await Promise.all(processes.map((process) => process.kill()));
    },
  };
}
