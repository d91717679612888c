// What becomes due while a server is away is granted when it is back, and uses up no attempt: P-111.
import assert from "node:assert/strict";
import { startNats } from "../../tools/servers/nats.ts";
import { type ServiceProcess, startService } from "../../tools/servers/service_process.ts";
import { until } from "../../tools/servers/wait.ts";
import { call } from "../support/api.ts";
import { freshDatabase, ownDatabase } from "../support/databases.ts";
import { waitingForLocks, whileTableIsLocked } from "../support/locks.ts";
import { ask, settingsOf } from "../support/entitlement.ts";
import {
  assertOnTime,
  assertSums,
  inMs,
  reservationRows,
  reserve,
  reserveRight,
  transactionRows,
  untilAllAre,
} from "../support/points.ts";
import { freshStreamNames, readStream } from "../support/streams.ts";

const untilReady = ({ url }: ServiceProcess) =>
  until("it is ready", async () => (await call(`${url}/readyz`)).status === 200);

const dueMs = [800, 1_000, 1_200, 2_000, 3_000];

async function reserveAll(url: string): Promise<void> {
  for (const [i, ms] of dueMs.entries()) {
    const cause = { reason: "campaign", source_id: `${i}` };
    const execute_at = inMs(ms);
    for (const user_id of ["ann", "bob"]) {
      assert.equal((await reserve(url, { user_id, execute_at, ...cause })).status, 202);
    }
    const right = await reserveRight(url, { stock_keeping_unit: `item-${i}`, execute_at });
    assert.equal(right.status, 202, right.text);
  }
}

const untilPast = (time: Date | undefined) =>
  until("all are due", () => Date.now() > Number(time) + 500);

Deno.test("P-111: with the database away across due times all are granted on its return, oldest first, with attempts 0", async () => {
  await using database = await ownDatabase();
  const settings = {
    ...settingsOf(database.serviceUrl),
    ENTITLEMENT_RESERVATIONS_MAX_ATTEMPTS: "1",
  };
  await using service = await startService("entitlement", settings);
  await untilReady(service);
  await reserveAll(service.url);
  const last = (await reservationRows(database.ownerUrl)).at(-1)?.execute_at;
  await database.server.kill();
  await untilPast(last);
  await database.server.start();
  const rows = await untilAllAre(database.ownerUrl, ["DONE"]);
  assert.deepEqual(rows.map(({ attempt_count }) => attempt_count), rows.map(() => 0));
  for (const user_id of ["ann", "bob"]) {
    const granted = await transactionRows(database.ownerUrl, user_id);
    assert.deepEqual(granted.map(({ source_id }) => source_id), ["0", "1", "2", "3", "4"]);
  }
  await assertSums(database.ownerUrl);
  const errors = service.log.filter(({ level }) => level === "error");
  assert.ok(errors.length <= 3, JSON.stringify(errors));
});

Deno.test("P-111: what a worker is carrying out when the database goes away is granted on its return, with attempts 0", async () => {
  await using database = await ownDatabase();
  const settings = {
    ...settingsOf(database.serviceUrl),
    ENTITLEMENT_RESERVATIONS_MAX_ATTEMPTS: "1",
  };
  await using service = await startService("entitlement", settings);
  await untilReady(service);
  await whileTableIsLocked(database.ownerUrl, "point_root", async () => {
    assert.equal((await reserve(service.url)).status, 202);
    await until("it is at it", async () => await waitingForLocks(database.ownerUrl) === 1);
    await database.server.kill();
  });
  await database.server.start();
  const [row] = await untilAllAre(database.ownerUrl, ["DONE"]);
  assert.equal(row?.attempt_count, 0);
  await assertSums(database.ownerUrl);
});

Deno.test("P-111: a start without the database waits for it, and grants what was due with attempts 0", async () => {
  await using database = await ownDatabase();
  const settings = settingsOf(database.serviceUrl);
  const off = { ...settings, ENTITLEMENT_RESERVATIONS_ENABLED: "false" };
  const first = await startService("entitlement", off);
  assert.equal((await reserve(first.url)).status, 202);
  await first.stop();
  await database.server.stop();
  await using service = await startService("entitlement", settings);
  assert.equal((await call(`${service.url}/readyz`)).status, 503);
  await database.server.start();
  const [row] = await untilAllAre(database.ownerUrl, ["DONE"]);
  assert.equal(row?.attempt_count, 0);
});

Deno.test("P-111: with NATS away all are granted at their time, with attempts 0, and published on its return", async () => {
  await using nats = await startNats();
  await using database = await freshDatabase("entitlement");
  const names = freshStreamNames();
  const settings = { ...settingsOf(database.serviceUrl, names), NATS_URL: nats.url };
  await using service = await startService("entitlement", settings);
  await untilReady(service);
  await nats.kill();
  await reserveAll(service.url);
  const rows = await untilAllAre(database.ownerUrl, ["DONE"]);
  assertOnTime(rows);
  await assertSums(database.ownerUrl);
  await nats.start();
  await until("all are published", async () => {
    const stored = await readStream(nats.url, names.stream).catch(() => []);
    return stored.length === rows.length;
  });
  const failed = await ask(
    database.ownerUrl,
    "select from outbox_events where attempt_count > 0 or status = 'FAILED'",
  );
  assert.equal(failed.length, 0);
});
