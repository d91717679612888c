// While the services run, neither the newest migrations nor those of a next release delay their
// writes for long.
import assert from "node:assert/strict";
import { type Database, openDatabase, query } from "../../shared/postgres/postgres.ts";
import { changeOf, commitChanges } from "../changes/change.ts";
import { startReplicas } from "../support/changes.ts";
import type { ServiceName } from "../../tools/services.ts";
import { withClient } from "../support/databases.ts";
import { fillNotifications, fillOutbox, finishedRows } from "./full_tables.ts";
import { startLoad } from "../../tools/load/load.ts";
import { databaseAt, migrateWith, newestVersion } from "./migrated.ts";
import { insertEvents, manyEvents } from "../support/outbox.ts";
import { assertSentOnceInOrder, countSent, startSystem } from "../support/system.ts";
import { type DatabaseUrls, untilReady, urlsOf } from "../../tools/load/stage.ts";
import { inTime, until } from "../../tools/servers/wait.ts";

// A wait that a caller does not notice. PostgreSQL cancels a vacuum that is in the way only after 1
// s.
const noticedMs = 250;

Deno.test("the newest migration of entitlement delays no change, with a full outbox", async () => {
  await using database = await databaseBefore("entitlement");
  await fillOutbox(database.ownerUrl);
  await insertEvents(database.ownerUrl, manyEvents({ keys: 100, versions: 10 }));
  await using replicas = await startReplicas(2, database.serviceUrl);
  for (const { url } of replicas.processes) {
    const answer = await fetch(`${url}/readyz`);
    assert.equal(answer.status, 503);
    assert.match(await answer.text(), /lacks migrations/);
  }
  const before = startWriting(
    database,
    "entitlement",
    // The release before writes changes with the same statements.
    async (on, number) => {
      const change = changeOf({ userId: `before-${number}` });
      await commitChanges(on, [change], { idempotencyTtlMs: 60_000 });
    },
  );
  await before.goesOn(50);
  const waitedMs = await longestLockWait(database, () => migrateWith("entitlement", database, {}));
  await Promise.all(replicas.processes.map(untilReady));
  await using load = startLoad(replicas.urls);
  await load.goesOn(50); // while the previous release also runs, as in a rolling update
  await before.goesOn(50);
  await load.stop();
  report("a change", await before.stop(), waitedMs);
  assert.deepEqual(load.client.failures, []);
  assert.ok(waitedMs < noticedMs, `a statement waited ${waitedMs} ms for a lock`);
});

Deno.test("the newest migration of notification delays no event, with full tables", async () => {
  await using database = await databaseBefore("notification");
  await fillNotifications(database.ownerUrl);
  const receiving = startWriting(database, "notification", receive);
  await receiving.goesOn(50);
  const waitedMs = await longestLockWait(database, () => migrateWith("notification", database, {}));
  await receiving.goesOn(50);
  report("an event", await receiving.stop(), waitedMs);
  assert.ok(waitedMs < noticedMs, `a statement waited ${waitedMs} ms for a lock`);
});

// Changes that docs/deploy.md permits: the present services do not know them, and do not need them.
const nextRelease = (table: string) => ({
  adds: `alter table ${table} add column note text not null default '';
    create table notes (id bigint generated always as identity primary key, note text not null);`,
  indexes: `-- Without a transaction, beside the writers.
    drop index concurrently if exists ${table}_by_note;
    create index concurrently ${table}_by_note on ${table} (note) where note <> '';`,
});

Deno.test("the present services work while the tables of the next release are made, and with them", async () => {
  await using system = await startSystem();
  await fillOutbox(system.entitlement.ownerUrl);
  await fillNotifications(system.notification.ownerUrl);
  const sentBefore = await countSent(system);
  await using load = startLoad(urlsOf(system.replicas.entitlement));
  await load.goesOn(50);
  for (
    const [service, table] of [["entitlement", "outbox_events"], [
      "notification",
      "notifications",
    ]] as const
  ) {
    const next = await newestVersion(service) + 1;
    const { adds, indexes } = nextRelease(table);
    const more = { [nameOf(next, "adds")]: adds, [nameOf(next + 1, "indexes")]: indexes };
    const waitedMs = await longestLockWait(
      system[service],
      () => migrateWith(service, system[service], { more }),
    );
    report(`a statement of ${service}`, load.client.slowestMs, waitedMs);
    assert.ok(waitedMs < noticedMs, `a statement waited ${waitedMs} ms for a lock`);
    await load.goesOn(50);
    for (const replica of system.replicas[service]) {
      await inTime("it is ready", untilReady(replica));
    }
  }
  await system.restart("entitlement");
  await load.goesOn(50);
  const changes = await load.stop();
  assert.deepEqual(load.client.failures, []);
  await until("all are sent", async () => await countSent(system) - sentBefore >= changes.length);
  assertSentOnceInOrder(system, changes);
});

function nameOf(version: number, name: string): string {
  return `${String(version).padStart(4, "0")}_${name}.sql`;
}

// A database at the previous version.
async function databaseBefore(service: ServiceName): Promise<DatabaseUrls & AsyncDisposable> {
  return await databaseAt(service, await newestVersion(service) - 1);
}

// Checks every few milliseconds for a statement of a service that waits for a table, and returns
// the longest wait.
async function longestLockWait(
  { ownerUrl }: DatabaseUrls,
  work: () => Promise<void>,
): Promise<number> {
  return await withClient(ownerUrl, async (watcher) => {
    let longestMs = 0;
    let over = false;
    const watch = async () => {
      while (!over) {
        const { rows: [row] } = await watcher.query<{ ms: number }>(
          `select coalesce(max(1000 * extract(epoch from clock_timestamp() - waitstart)), 0)::int as ms
           from pg_locks
           join pg_stat_activity using (pid)
           where not granted
             and locktype = 'relation'
             and datname = current_database()
             and application_name in ('entitlement', 'notification')`,
        );
        longestMs = Math.max(longestMs, row?.ms ?? 0);
        await new Promise((again) => setTimeout(again, 5));
      }
    };
    const watching = watch();
    await work();
    over = true;
    await watching;
    return longestMs;
  });
}

// Writes continuously, to the columns that both releases have.
function startWriting(
  { serviceUrl }: DatabaseUrls,
  service: ServiceName,
  write: (database: Database, number: number) => Promise<void>,
) {
  const database = openDatabase(serviceUrl, service);
  let written = 0;
  let slowestMs = 0;
  let stopped = false;
  const writeOn = async () => {
    for (; !stopped; written++) {
      const from = performance.now();
      await write(database, written);
      slowestMs = Math.max(slowestMs, performance.now() - from);
    }
  };
  const writing = writeOn();
  return {
    goesOn: async (more: number) => {
      const enough = written + more;
      await until("rows are written", () => written >= enough);
    },
    stop: async () => {
      stopped = true;
      await writing;
      await database.end();
      return slowestMs;
    },
  };
}

async function receive(database: Database, number: number): Promise<void> {
  await query(
    database,
    `with new_event as (
       insert into processed_events (event_id) values ($1) returning event_id
     )
     insert into notifications
       (notification_id, event_id, user_id, aggregate_key, version, type, occurred_at, payload_json)
     select event_id, event_id, $2, $2 || ':book', 1, 'EntitlementGranted', now(), '{}'
     from new_event`,
    [crypto.randomUUID(), `user-${number}`],
  );
}

function report(what: string, slowestMs: number, waitedMs: number): void {
  console.log(
    `${finishedRows} finished rows: ${what} took ${Math.round(slowestMs)} ms at most, ` +
      `and waited ${waitedMs} ms for a table`,
  );
}
