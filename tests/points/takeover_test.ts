// Due reservations are carried out by any replica, each once: P-102, and of P-108 what happens to those
// that a replica has claimed and can't finish. Crashes at all other points are in the crash matrix.
import assert from "node:assert/strict";
import { markCarriedOut, type ReservationRow } from "../../entitlement/points/reservations.ts";
import { transaction } from "../../shared/postgres/postgres.ts";
import type { Settings } from "../../tools/servers/service_process.ts";
import { startService } from "../../tools/servers/service_process.ts";
import { until } from "../../tools/servers/wait.ts";
import { openFresh, withClient } from "../support/databases.ts";
import { type Entitlement, startEntitlement } from "../support/entitlement.ts";
import { waitingForLocks, whileTableIsLocked } from "../support/locks.ts";
import {
  assertSums,
  balanceOf,
  find,
  inMs,
  insertReservations,
  reserve,
  transactionRows,
  untilAllAre,
} from "../support/points.ts";

const pollMs = 500;
const leaseMs = 2_000;
const brief: Settings = {
  ENTITLEMENT_RESERVATIONS_POLL_INTERVAL: `${pollMs}ms`,
  ENTITLEMENT_RESERVATIONS_LEASE: `${leaseMs}ms`,
};

const replicaOf = ({ settings }: Entitlement, more: Settings = {}) =>
  startService("entitlement", { ...settings, ...more });

Deno.test("a reservation that is not leased any more undoes the commit that carries it out", async () => {
  await using place = await openFresh("entitlement");
  const row = { id: crypto.randomUUID(), token: crypto.randomUUID() } as ReservationRow;
  await assert.rejects(
    transaction(place.database, (tx) => markCarriedOut(tx, [{ row, result: {} }])),
    /"A reservation was not leased any more"/,
  );
});

Deno.test("P-102: a row that is due again and again has one transaction and changes the balance once", async () => {
  await using kenri = await startEntitlement(brief);
  const { url, rows, database: { ownerUrl } } = kenri;
  const { reservation_id } = (await reserve(url)).json;
  await untilAllAre(ownerUrl, ["DONE"]);
  const first = (await find(url, reservation_id)).json;
  for (let round = 0; round < 5; round++) {
    await rows(
      `update point_reservations
       set status = 'PENDING', done_at = null, transaction_id = null, next_retry_at = now()`,
    );
    const [row] = await untilAllAre(ownerUrl, ["DONE"]);
    assert.equal(row?.transaction_id, first.transaction_id);
    assert.equal(row?.attempt_count, 0);
  }
  assert.equal(await balanceOf(url, "ann"), 10);
  await assertSums(ownerUrl);
});

Deno.test("P-102: a row that is due again among new ones of its user is skipped, and they are granted", async () => {
  await using kenri = await startEntitlement(brief);
  const { rows, database: { ownerUrl } } = kenri;
  await insertReservations(ownerUrl, { count: 20, users: 2, fromMs: 0, overMs: 0 });
  await untilAllAre(ownerUrl, ["DONE"]);
  await insertReservations(ownerUrl, { count: 20, users: 2, fromMs: 2_000, overMs: 0 });
  await rows(
    `update point_reservations
     set status = 'PENDING', done_at = null, transaction_id = null,
       next_retry_at = (select max(execute_at) from point_reservations)
     where status = 'DONE'`,
  );
  await untilAllAre(ownerUrl, ["DONE"]);
  assert.equal((await transactionRows(ownerUrl)).length, 40);
  assert.equal(await balanceOf(kenri.url, "user-0"), 20);
  await assertSums(ownerUrl);
});

Deno.test("P-102: three workers that claim a few rows at a time grant each of 600 once", async () => {
  const small = { ...brief, ENTITLEMENT_RESERVATIONS_BATCH_SIZE: "7" };
  await using kenri = await startEntitlement(small);
  const { ownerUrl } = kenri.database;
  await using _second = await replicaOf(kenri);
  await using _third = await replicaOf(kenri);
  await insertReservations(ownerUrl, { count: 600, users: 5, fromMs: 500, overMs: 300 });
  const rows = await untilAllAre(ownerUrl, ["DONE"]);
  assert.equal(new Set(rows.map(({ transaction_id }) => transaction_id)).size, 600);
  assert.ok(rows.every(({ attempt_count }) => attempt_count === 0));
  assert.equal(await balanceOf(kenri.url, "user-4"), 120);
  await assertSums(ownerUrl);
});

Deno.test("P-108: another replica takes over what a dead one has claimed, within lease and poll interval", async () => {
  await using kenri = await startEntitlement({ ENTITLEMENT_RESERVATIONS_ENABLED: "false" });
  const { ownerUrl } = kenri.database;
  const working = { ...brief, ENTITLEMENT_RESERVATIONS_ENABLED: "true" };
  await using dead = await replicaOf(kenri, working);
  await using replicas = new AsyncDisposableStack();
  await reserve(kenri.url, { execute_at: inMs(2_000) });
  const diedAt = await whileTableIsLocked(ownerUrl, "point_root", async (release) => {
    await until("it is at it", async () => await waitingForLocks(ownerUrl) === 1);
    replicas.use(await replicaOf(kenri, working));
    await dead.kill();
    const [{ now } = { now: NaN }] = await kenri.rows<{ now: number }>(
      "select extract(epoch from now())::float8 * 1000 as now",
    );
    await endSessionsThatWait(ownerUrl);
    await release();
    return now;
  });
  const [row] = await untilAllAre(ownerUrl, ["DONE"]);
  const tookMs = Number(row?.execute_at) + Number(row?.late_ms) - diedAt;
  const busyMs = 300; // of a machine that runs other tests as well
  assert.ok(tookMs <= leaseMs + pollMs + busyMs, `${tookMs} ms`);
  assert.equal(row?.attempt_count, 1, "a lease that has run out is an attempt");
  assert.equal(await balanceOf(kenri.url, "ann"), 10);
  await assertSums(ownerUrl);
});

Deno.test("P-102: a replica that was suspended for longer than its lease grants nothing again", async () => {
  await using kenri = await startEntitlement({ ENTITLEMENT_RESERVATIONS_ENABLED: "false" });
  const { ownerUrl } = kenri.database;
  const working = { ...brief, ENTITLEMENT_RESERVATIONS_ENABLED: "true" };
  await using sleeper = await replicaOf(kenri, working);
  await reserve(kenri.url, { execute_at: inMs(2_000) });
  await whileTableIsLocked(ownerUrl, "point_root", async (release) => {
    await until("it is at it", async () => await waitingForLocks(ownerUrl) === 1);
    sleeper.signal("SIGSTOP");
    await until("its lease has run out", async () => {
      const expired = await kenri.rows("select from point_reservations where lease_until < now()");
      return expired.length === 1;
    });
    await release();
  });
  await using _other = await replicaOf(kenri, working);
  await until("the other one has claimed it", async () => {
    const [row] = await kenri.rows<{ attempt_count: number }>(
      "select attempt_count from point_reservations",
    );
    return row?.attempt_count === 1;
  });
  sleeper.signal("SIGCONT");
  await untilAllAre(ownerUrl, ["DONE"]);
  assert.equal((await transactionRows(ownerUrl)).length, 1);
  assert.equal(await balanceOf(kenri.url, "ann"), 10);
  assert.equal(await sleeper.stop(), 0);
  await assertSums(ownerUrl);
});

/** PostgreSQL would finish what the dead client has asked for. */
function endSessionsThatWait(ownerUrl: string): Promise<unknown> {
  return withClient(ownerUrl, (owner) =>
    owner.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
       where datname = current_database() and wait_event_type = 'Lock'`,
    ));
}
