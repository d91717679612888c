// A database is restored from a backup, while the stream and the other database are not.
import assert from "node:assert/strict";
import { startNats } from "../../tools/servers/nats.ts";
import { grant as grantOnce, post, someFields } from "../support/api.ts";
import { backUp } from "./backups.ts";
import { ask } from "../support/entitlement.ts";
import { startLoad } from "../../tools/load/load.ts";
import { ownDatabase } from "../support/databases.ts";
import { runCommand, runQuery } from "../operators/runbook.ts";
import {
  assertKept,
  assertSentOnceInOrder,
  migrationSettings,
  startSystem,
  untilAllSent,
} from "../support/system.ts";
import { type Stage, urlsOf } from "../../tools/load/stage.ts";
import { until } from "../../tools/servers/wait.ts";

const entitlementRestored = "The entitlement database was restored from a backup";
const notificationRestored = "The notification database was restored from a backup";

Deno.test("an entitlement database from before some events were published: all changes are recovered", async () => {
  await using database = await ownDatabase("entitlement");
  await using nats = await startNats();
  await using system = await startSystem({
    entitlement: database,
    natsUrl: nats.url,
    settings: { ENTITLEMENT_SEAL_KEY: "k".repeat(32) },
  });
  await using load = startLoad(urlsOf(system.replicas.entitlement));
  await load.goesOn(100);
  await nats.stop();
  await load.goesOn(50); // in the backup these are not published yet
  await using backup = await backUp(database.server);
  await nats.start();
  await load.goesOn(100); // the backup does not contain these
  const changes = [...await load.stop()];
  await untilAllSent(system, changes);
  assert.deepEqual(load.client.failures, []);
  const before = await entitlementsOf(system);

  await system.stop("entitlement");
  await backup.restore();
  assert.notDeepEqual(await entitlementsOf(system), before);
  const said = await runCommand(entitlementRestored, 0, migrationSettings(system));
  const recovered = Number(/(\d+) changes were recovered/.exec(said)?.[1]);
  assert.ok(recovered >= 100, said);
  assert.deepEqual(await entitlementsOf(system), before);
  const again = await runCommand(entitlementRestored, 0, migrationSettings(system));
  assert.match(again, /\b0 changes were recovered/);

  await system.start("entitlement");
  await until("all is published", () => nothingWaits(entitlementRestored, database.ownerUrl));
  await using more = startLoad(urlsOf(system.replicas.entitlement), "later");
  await more.goesOn(50);
  changes.push(...await more.stop());
  await untilAllSent(system, changes);
  await assertKept(system, changes);
  assertSentOnceInOrder(system, changes);
  console.log(`${changes.length} changes, ${recovered} of them recovered, each sent once`);
});

Deno.test("recover refuses to run while the service runs", async () => {
  await using system = await startSystem({ replicas: 1 });
  await until("it is connected", async () => {
    const { status } = await grantOnce(urlsOf(system.replicas.entitlement)[0] as string);
    return status !== 503;
  });
  await assert.rejects(
    runCommand(entitlementRestored, 0, migrationSettings(system)),
    /The entitlement service is running: stop it first/,
  );
});

// What happens without the procedure.
Deno.test("without recover a version is used twice, and the notifications of both are sent", async () => {
  await using database = await ownDatabase("entitlement");
  await using system = await startSystem({ entitlement: database, replicas: 1 });
  await using backup = await backUp(database.server);
  await changeUntilTaken(system, "grants");
  await until("it is sent", async () => (await notifiedVersions(system)).length === 1);
  await system.stop("entitlement");
  await backup.restore();
  await system.start("entitlement");
  await changeUntilTaken(system, "revokes");
  await until("it is sent", async () => (await notifiedVersions(system)).length === 2);
  assert.deepEqual(await notifiedVersions(system), [
    { type: "EntitlementGranted", version: 1 },
    { type: "EntitlementRevoked", version: 1 },
  ]);
});

Deno.test("a notification database from a backup receives all events again, and sends under the same ids", async () => {
  await using database = await ownDatabase("notification");
  await using system = await startSystem({ notification: database });
  await using load = startLoad(urlsOf(system.replicas.entitlement));
  await load.goesOn(100);
  await using backup = await backUp(database.server);
  const goneOn = load.changes.length;
  await load.goesOn(100);
  await untilAllSent(system, load.changes.slice());

  await system.stop("notification");
  await backup.restore(); // while changes are made
  await load.goesOn(50);
  const said = await runCommand(notificationRestored, 0, migrationSettings(system));
  assert.match(said, /events are delivered again/);
  await system.start("notification");
  await load.goesOn(50);
  const changes = await load.stop();
  await untilAllSent(system, changes);
  await until("nothing waits", () => nothingWaits(notificationRestored, database.ownerUrl));
  assert.deepEqual(load.client.failures, []);
  await assertKept(system, changes);

  const sends = system.everStarted.notification.flatMap(({ log }) => log)
    .flatMap(({ notification_id }) => notification_id === undefined ? [] : [notification_id]);
  assert.equal(new Set(sends).size, changes.length, "a repeated send has the id of the first");
  assert.ok(sends.length > changes.length, "nothing was sent again");
  console.log(
    `${changes.length} changes, ${goneOn} before the backup, ${sends.length - changes.length} ` +
      "sends repeated under the same id",
  );
});

function entitlementsOf({ entitlement }: Stage): Promise<unknown[]> {
  return ask(
    entitlement.ownerUrl,
    `select to_jsonb(entitlement) - 'last_hash' as entitlement -- which has a new salt
     from entitlements entitlement
     order by user_id, stock_keeping_unit`,
  );
}

function notifiedVersions({ notification }: Stage): Promise<unknown[]> {
  return ask(
    notification.ownerUrl,
    `select type, version::int as version from notifications where status = 'SENT' order by type`,
  );
}

async function changeUntilTaken(system: Stage, action: "grants" | "revokes"): Promise<void> {
  const [url = ""] = urlsOf(system.replicas.entitlement);
  await until("it is taken", async () => {
    return (await post(url, action, someFields, action)).status === 200;
  });
}

async function nothingWaits(heading: string, ownerUrl: string): Promise<boolean> {
  return (await runQuery(heading, 0, ownerUrl)).length === 0;
}
