// A right that is granted or revoked at a time is an ordinary change at that time: P-112.
import assert from "node:assert/strict";
import { grant, list, revoke } from "../support/api.ts";
import { type Entitlement, startEntitlement } from "../support/entitlement.ts";
import { cancel, find, inMs, paths, reserveRight, untilAllAre } from "../support/points.ts";
import { startService } from "../../tools/servers/service_process.ts";

let kenri: Entitlement;
let url: string;
Deno.test.beforeAll(async () => {
  kenri = await startEntitlement();
  url = kenri.url;
});
Deno.test.afterAll(() => kenri.close());

const newUser = () => ({ user_id: `user ${crypto.randomUUID()}` });
const shown = async (id: string) => (await find(url, id, {}, paths.reserveRight)).json;

async function reserved(fields: Record<string, unknown>): Promise<string> {
  const { status, text, json } = await reserveRight(url, fields);
  assert.equal(status, 202, text);
  return json.reservation_id;
}

const untilDone = () => untilAllAre(kenri.database.ownerUrl, ["DONE", "CANCELLED"]);

Deno.test("a reserved grant and revoke are changes of their time, with event and audit", async () => {
  const user = newUser();
  const granting = await reserved({ ...user, execute_at: inMs(2_000) });
  const revoking = await reserved({ ...user, action: "REVOKE", execute_at: inMs(2_300) });
  assert.equal((await shown(granting)).status, "PENDING");
  assert.deepEqual((await list(url, user.user_id)).json.entitlements, []);
  await untilDone();
  const [entitlement] = (await list(url, user.user_id)).json.entitlements;
  assert.deepEqual([entitlement.status, entitlement.version], ["REVOKED", 2]);
  for (
    const [id, status, version] of [[granting, "ACTIVE", 1], [revoking, "REVOKED", 2]] as const
  ) {
    const { outcome, ...reservation } = await shown(id);
    assert.deepEqual([reservation.status, reservation.attempt_count], ["DONE", 0]);
    assert.equal(outcome.status, 200);
    const { updated_at, ...body } = outcome.body;
    assert.deepEqual(body, { ...user, stock_keeping_unit: "book", status, version });
    assert.ok(Date.parse(updated_at) >= Date.parse(reservation.execute_at));
  }
  const changes = await kenri.rows(
    `select action, source, source_id, request_id, event_type
     from entitlement_audit
     join outbox_events on event_id = audit_id
     where user_id = $1
     order by occurred_at`,
    [user.user_id],
  );
  const same = { source: "purchase", source_id: "p-1" };
  assert.deepEqual(changes, [
    {
      ...same,
      action: "GRANT",
      request_id: `reservation:${granting}`,
      event_type: "EntitlementGranted",
    },
    {
      ...same,
      action: "REVOKE",
      request_id: `reservation:${revoking}`,
      event_type: "EntitlementRevoked",
    },
  ]);
});

Deno.test("P-112: a reserved grant of an active right is done, with the refusal as its outcome", async () => {
  const user = newUser();
  await grant(url, user);
  const id = await reserved({ ...user, execute_at: inMs(200) });
  await untilDone();
  const { status, outcome, attempt_count, last_error } = await shown(id);
  assert.deepEqual([status, attempt_count, last_error ?? null], ["DONE", 0, null]);
  assert.deepEqual(outcome, {
    status: 409,
    body: { code: "ENTITLEMENT_STATE_CONFLICT", message: "already ACTIVE" },
  });
  const [entitlement] = (await list(url, user.user_id)).json.entitlements;
  assert.equal(entitlement.version, 1);
});

Deno.test("P-112: grants and revokes of one right keep their order, also those that are due together and with several workers", async () => {
  const few = { ...kenri.settings, ENTITLEMENT_RESERVATIONS_BATCH_SIZE: "3" };
  await using _second = await startService("entitlement", few);
  await using _third = await startService("entitlement", few);
  const user = newUser();
  const dueMs = Date.now() + 2_000;
  const rights = await Promise.all(Array.from({ length: 8 }, async (_, right) => {
    const ids: string[] = [];
    for (let i = 0; i < 8; i++) {
      const execute_at = new Date(dueMs + Math.floor(i / 4) * 100).toISOString();
      const action = i % 2 === 0 ? "GRANT" : "REVOKE";
      ids.push(await reserved({ ...user, stock_keeping_unit: `${right}`, action, execute_at }));
    }
    return ids;
  }));
  await untilDone();
  for (const ids of rights) {
    const outcomes = await Promise.all(ids.map(async (id) => (await shown(id)).outcome));
    assert.deepEqual(outcomes.map(({ status }) => status), ids.map(() => 200));
    assert.deepEqual(outcomes.map(({ body }) => body.version), [1, 2, 3, 4, 5, 6, 7, 8]);
  }
});

Deno.test("a revoke that was reserved first and is due later acts later", async () => {
  const user = newUser();
  await reserved({ ...user, action: "REVOKE", execute_at: inMs(1_900) });
  await reserved({ ...user, action: "GRANT", execute_at: inMs(1_400) });
  await untilDone();
  const [entitlement] = (await list(url, user.user_id)).json.entitlements;
  assert.deepEqual([entitlement.status, entitlement.version], ["REVOKED", 2]);
});

Deno.test("a request and a due reservation of one right follow one another", async () => {
  const user = newUser();
  const execute_at = inMs(500);
  await reserved({ ...user, execute_at });
  for (let i = 0; i < 40; i++) await (i % 2 === 0 ? revoke : grant)(url, user);
  await untilDone();
  const [counted] = await kenri.rows(
    `select count(*)::int as changes, count(distinct detail->>'version')::int as versions,
       max((detail->>'version')::int) as newest
     from entitlement_audit where user_id = $1`,
    [user.user_id],
  );
  const { changes } = counted as { changes: number };
  assert.deepEqual(counted, { changes, versions: changes, newest: changes });
});

Deno.test("a cancelled right is never granted", async () => {
  const user = newUser();
  const execute_at = inMs(3_600_000);
  const id = await reserved({ ...user, execute_at });
  assert.equal((await cancel(url, id, {}, paths.reserveRight)).status, 200);
  await reserved({ ...user, stock_keeping_unit: "song", execute_at });
  await kenri.rows("update point_reservations set execute_at = now() where execute_at = $1", [
    execute_at,
  ]);
  await untilDone();
  const { entitlements } = (await list(url, user.user_id)).json;
  assert.deepEqual(
    entitlements.map((one: { stock_keeping_unit: string }) => one.stock_keeping_unit),
    ["song"],
  );
});

Deno.test("a reserved right of the past is granted at once", async () => {
  const user = newUser();
  const id = await reserved({ ...user, execute_at: "2001-02-03T04:05:06+07:00" });
  await untilDone();
  assert.equal((await shown(id)).outcome.status, 200);
});

Deno.test("a reserved grant beyond the capacity of its user is done, with the refusal as its outcome", async () => {
  await using small = await startEntitlement({ ENTITLEMENT_MAX_PER_USER: "1" });
  await grant(small.url);
  const { reservation_id } = (await reserveRight(small.url, { stock_keeping_unit: "song" })).json;
  await untilAllAre(small.database.ownerUrl, ["DONE"]);
  const { outcome } = (await find(small.url, reservation_id, {}, paths.reserveRight)).json;
  assert.deepEqual([outcome.status, outcome.body.code], [409, "ENTITLEMENT_LIMIT_REACHED"]);
});
