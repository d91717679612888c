// While the database is unavailable, whatever the reason and however long, messages wait in the
// stream and use up no deliveries.
import assert from "node:assert/strict";
import { type OwnDatabase, ownDatabase, uniqueName, withClient } from "../support/databases.ts";
import { ask } from "../support/entitlement.ts";
import { eventOf, eventsOf, messageOf, tooLongForAnIndex } from "../support/events.ts";
import { countLogged } from "../support/logs.ts";
import {
  advisoriesSent,
  allSent,
  consumerInfo,
  countsOf,
  freshPlace,
  publishRaw,
  publishTo,
  startNotification,
  untilAllAcked,
  untilSent,
} from "../support/notification.ts";
import type { Place } from "../../tools/load/stage.ts";
import type { LogLine } from "../../tools/servers/service_process.ts";
import { natsUrl } from "../support/streams.ts";
import { until } from "../../tools/servers/wait.ts";

// An outage of 4 s would use up all deliveries if the messages were not held.
const brief = {
  NOTIFICATION_NATS_ACK_WAIT: "1s",
  NOTIFICATION_NATS_MAX_DELIVER: "2",
  NOTIFICATION_DELIVERY_LEASE: "2s",
};
const outageMs = 5_000;

Deno.test("a long outage of the database uses up no deliveries and loses nothing", async () => {
  await using database = await ownDatabase("notification");
  const place = placeOf(database);
  await using service = await startNotification(place, brief);
  const [before, during, later] = [
    eventsOf({ users: 20, versions: 5 }),
    eventsOf({ users: 30, versions: 5 }).map((event) => ({ ...event, stockKeepingUnit: "film" })),
    eventsOf({ users: 40, versions: 5 }).map((event) => ({ ...event, stockKeepingUnit: "song" })),
  ];
  await publishTo(place, before);
  await untilSent(place, 100);

  await database.server.stop();
  const stoppedAt = performance.now();
  await publishTo(place, during);
  await until("it notices", () => countLogged(service.log, /^Database unavailable/) === 1);
  await until("it pulls no more", async () => (await consumerInfo(place)).num_waiting === 0);
  await publishTo(place, later);
  await until("the outage was long", () => performance.now() - stoppedAt > outageMs);
  assert.equal((await consumerInfo(place)).num_pending, later.length, "it went on pulling");
  await database.server.start();

  await assertAllOnce(place, 450);
  assertLoggedOnce(service.log);
  assert.equal(await service.stop(), 0);
});

Deno.test("a database that is killed again and again under load uses up no deliveries and loses nothing", async () => {
  await using database = await ownDatabase("notification");
  const place = placeOf(database);
  // While the machine recovers a database and runs other tests, the service may not get to run for
  // a second.
  const settings = { ...brief, NOTIFICATION_NATS_ACK_WAIT: "3s" };
  await using service = await startNotification(place, settings);
  const events = eventsOf({ users: 100, versions: 30 });
  const publishing = inPieces(events, 50, (piece) => publishTo(place, piece));
  for (let kills = 0; kills < 3; kills++) {
    const { sent } = await countsOf(place);
    await untilSent(place, sent + 200);
    await database.server.kill();
    await publishing.next(10);
    await database.server.start();
  }
  await publishing.rest();
  await assertAllOnce(place, 3_000);
  assert.equal(await service.stop(), 0);
});

Deno.test("a read-only database, as after a failover, counts as unavailable", async () => {
  await using place = await freshPlace();
  const name = new URL(place.ownerUrl).pathname.slice(1);
  await using service = await startNotification(place, brief);
  await publishTo(place, [eventOf()]);
  await untilSent(place, 1);
  await changeForAll(place, `alter database ${name} set default_transaction_read_only = on`);
  await publishTo(place, eventsOf({ users: 30, versions: 1 }));
  await until("it notices", () => countLogged(service.log, /^Database unavailable/) === 1);
  await new Promise((over) => setTimeout(over, outageMs));
  await changeForAll(place, `alter database ${name} reset default_transaction_read_only`);
  await assertAllOnce(place, 31);
});

Deno.test("consumption resumes after an outage even if the only message in hand is refused", async () => {
  await using place = await freshPlace();
  await using service = await startNotification(place);
  await publishTo(place, [eventOf()]);
  await untilSent(place, 1);
  await ask(place.ownerUrl, "alter table processed_events rename to away");
  await publishRaw(place, [messageOf({ userId: tooLongForAnIndex() })]);
  await until("it notices", () => countLogged(service.log, /^Database unavailable/) === 1);
  await ask(place.ownerUrl, "alter table away rename to processed_events");
  await until("it is refused", () => countLogged(service.log, / could not be stored/) === 1);
  await publishTo(place, [eventOf({ version: 2 })]);
  await untilSent(place, 2);
});

Deno.test("a stop during an outage gives back the messages in hand, in time and with exit code 0", async () => {
  await using database = await ownDatabase("notification");
  const place = placeOf(database);
  const service = await startNotification(place, { ...brief, SHUTDOWN_GRACE: "2s" });
  await publishTo(place, [eventOf()]);
  await untilSent(place, 1);
  await database.server.kill();
  await publishTo(place, eventsOf({ users: 100, versions: 2 }));
  await until("it notices", () => countLogged(service.log, /^Database unavailable/) === 1);
  const stoppedAt = performance.now();
  assert.equal(await service.stop(), 0);
  assert.ok(performance.now() - stoppedAt < 4_000, "the grace is 2 s");
  assert.equal(countLogged(service.log, / could not be stored/), 0);
  await database.server.start();
  await using _next = await startNotification(place, brief);
  await assertAllOnce(place, 201, { redeliveries: true });
});

function placeOf({ ownerUrl, serviceUrl }: OwnDatabase): Place {
  const stream = uniqueName("events");
  return { stream, subject: `${stream}.events`, natsUrl, ownerUrl, serviceUrl };
}

async function assertAllOnce(
  place: Place,
  events: number,
  { redeliveries = false } = {},
): Promise<void> {
  await untilSent(place, events, 60_000);
  await untilAllAcked(place);
  assert.deepEqual(await countsOf(place), allSent(events));
  assert.deepEqual(await advisoriesSent(place), { MAX_DELIVERIES: 0, MSG_TERMINATED: 0 });
  const { delivered } = await consumerInfo(place);
  if (!redeliveries) assert.equal(delivered.consumer_seq, events, "each was delivered once");
}

// Each loop logs once that it fails and once that it works again.
function assertLoggedOnce(log: LogLine[]): void {
  const problems = log.filter(({ level, message }) => level !== "info" && !/replica/.test(message));
  const byProblem = Map.groupBy(problems, ({ message }) => message.replace(/:.*/s, ""));
  assert.deepEqual([...byProblem].filter(([, lines]) => lines.length > 1), []);
  assert.ok(problems.length <= 3, JSON.stringify(problems));
}

/** Executes a statement that takes effect in new sessions, and ends all others. */
async function changeForAll(place: Place, statement: string): Promise<void> {
  await withClient(place.ownerUrl, async (owner) => {
    await owner.query("set default_transaction_read_only = off");
    await owner.query(statement);
    await owner.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
       where datname = current_database() and pid <> pg_backend_pid()`,
    );
  });
}

interface Pieces {
  next(pieces: number): Promise<void>;
  rest(): Promise<void>;
}

// Sends the pieces in the background; `next` waits until that many more are sent.
function inPieces<Item>(
  items: Item[],
  size: number,
  send: (piece: Item[]) => Promise<unknown>,
): Pieces {
  let sent = 0;
  const running = (async () => {
    for (let from = 0; from < items.length; from += size) {
      await send(items.slice(from, from + size));
      sent++;
      await new Promise((over) => setTimeout(over, 20));
    }
  })();
  const total = Math.ceil(items.length / size);
  return {
    next: async (pieces) => {
      const wanted = Math.min(total, sent + pieces);
      await until("more is published", () => sent >= wanted);
    },
    rest: () => running,
  };
}
