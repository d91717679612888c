// P-114: a user who has points and reservations is erased.
import assert from "node:assert/strict";
import { ops } from "../operators/ops.ts";
import { type Answer, assertError, grant } from "../support/api.ts";
import { ask } from "../../tools/servers/asking.ts";
import { until } from "../../tools/servers/wait.ts";
import {
  assertSums,
  find,
  grantPoints,
  inMs,
  listOf,
  reservationRows,
  reserve,
  reserveRight,
  spendPoints,
  statusesOf,
} from "../support/points.ts";
import { operate, type Stack, startStack } from "../support/stack.ts";

const user = { user_id: "secret-ann", source_id: "secret-cause" };
const right = { user_id: user.user_id, purchase_id: user.source_id };
const later = inMs(3_600_000);

Deno.test("P-114: reservations are cancelled, the statement is pseudonymous, the chain verifies", async () => {
  await using stack = await startStack();
  const { entitlement: { url, database: { ownerUrl } } } = stack;
  const requests: Record<string, (key: string) => Promise<Answer>> = {
    "secret-grant": (key) => grantPoints(url, { ...user, point_amount: 30 }, key),
    "secret-spend": (key) => spendPoints(url, user, key),
    "secret-refused": (key) => spendPoints(url, { ...user, point_amount: 1_000 }, key),
    "secret-due": (key) => reserve(url, user, key),
    "secret-later": (key) => reserve(url, { ...user, execute_at: later }, key),
    "secret-right": (key) => reserveRight(url, { ...right, execute_at: later }, key),
    "secret-due-right": (key) => reserveRight(url, right, key),
  };
  const answers: Record<string, Answer> = {};
  for (const [key, send] of Object.entries(requests)) answers[key] = await send(key);
  await grantPoints(url, { user_id: "bob" });
  await until("what is due is done", async () => (await statusesOf(ownerUrl))["DONE"] === 2);
  const counts = await countRows(ownerUrl);
  const sums = await balances(ownerUrl);

  await untilErased(stack);
  const refused = await ask(ownerUrl, "delete from idempotency_keys where response_code = 409");
  assert.deepEqual(refused, []);
  assert.deepEqual(await traces(ownerUrl), ["idempotency_keys: the keys until they expire"]);
  assert.deepEqual(await countRows(ownerUrl), counts);
  assert.deepEqual(await balances(ownerUrl), sums);
  assert.deepEqual(await statusesOf(ownerUrl), { DONE: 2, CANCELLED: 2 });
  await assertSums(ownerUrl);
  const wrongKeys = await ask(
    ownerUrl,
    `select aggregate_key from outbox_events
     where payload ? 'unit'
       and aggregate_key <> points_key_of(payload->>'user_id', payload->>'unit')`,
  );
  assert.deepEqual(wrongKeys, []);
  const verified = await ops(stack, "audit", "verify", "--json");
  const { problems, erased, balances: chains } = JSON.parse(verified.output);
  assert.deepEqual([verified.code, problems, erased, chains], [0, [], 4, 2]);

  const [pseudonym] = await ask<{ user_id: string }>(
    ownerUrl,
    "select user_id from point_root where user_id <> 'bob'",
  );
  const statement = await listOf(url, pseudonym?.user_id ?? "", "points/transactions");
  assert.deepEqual(
    statement.json.transactions.map((one: { source_id: string }) => one.source_id),
    ["erased", "erased", "erased"],
  );
  const { reservation_id } = answers["secret-right"]?.json ?? {};
  const found = await find(url, reservation_id, {}, "/v1/entitlements/reservations");
  assert.deepEqual([found.json.status, found.json.user_id], ["CANCELLED", pseudonym?.user_id]);

  // Now and after the stored answers have expired, no repeated request brings the user back.
  delete requests["secret-refused"]; // it changed nothing, so it leaves nothing but its answer
  for (const _ of ["stored", "expired"]) {
    for (const [key, send] of Object.entries(requests)) {
      assertError(await send(key), 409, "IDEMPOTENCY_KEY_CONFLICT");
    }
    await ask(ownerUrl, "delete from idempotency_keys");
    delete requests["secret-due-right"]; // the keys of rights are kept only with their answers
  }
  assert.deepEqual(await traces(ownerUrl), []);
  const anew = await grantPoints(url, { ...user, point_amount: 5 });
  assert.deepEqual([anew.json.balance, anew.json.transaction.version], [5, 1], "a new user");
});

Deno.test("nobody is erased while a reservation of theirs is being carried out", async () => {
  await using stack = await startStack({
    entitlement: { ENTITLEMENT_RESERVATIONS_ENABLED: "false" },
  });
  const { entitlement: { url, database: { ownerUrl } } } = stack;
  await reserve(url, user, "secret-key");
  await ask(
    ownerUrl,
    `update point_reservations
     set status = 'PROCESSING', claim_token = gen_random_uuid(), locked_at = now(),
       lease_until = now() + interval '1 hour', locked_by = 'other'`,
  );
  const before = await reservationRows(ownerUrl);
  assert.equal((await erase(stack)).outcome, "WAITING");
  assert.deepEqual(await reservationRows(ownerUrl), before);
  await ask(ownerUrl, "update point_reservations set status = 'FAILED', claim_token = null");
  await untilErased(stack);
  assert.deepEqual(await statusesOf(ownerUrl), { CANCELLED: 1 }, "a dead letter is cancelled");
});

Deno.test("reservations that become due during an erasure are carried out before it or are cancelled", async () => {
  await using stack = await startStack();
  const { entitlement: { url, database: { ownerUrl } } } = stack;
  const sent = Array.from(
    { length: 200 },
    (_, i) => reserve(url, { ...user, execute_at: inMs(300 + 10 * i) }),
  );
  await Promise.all(sent);
  await untilErased(stack);
  await until("all are decided", async () => {
    const { PENDING = 0, PROCESSING = 0 } = await statusesOf(ownerUrl);
    return PENDING + PROCESSING === 0;
  });
  await assertSums(ownerUrl);
  assert.deepEqual(await traces(ownerUrl), []);
  const { code, output } = await ops(stack, "audit", "verify");
  assert.equal(code, 0, output);
});

Deno.test("points that are given during an erasure come before or after it, and no audit chain breaks", async () => {
  await using stack = await startStack();
  const { entitlement: { url, database: { ownerUrl } } } = stack;
  await grantPoints(url, user);
  let over = false;
  const giving = Array.from({ length: 4 }, async () => {
    while (!over) await grantPoints(url, user);
  });
  for (let i = 0; i < 5; i++) await untilErased(stack);
  over = true;
  await Promise.all(giving);
  await assertSums(ownerUrl);
  const { code, output } = await ops(stack, "audit", "verify");
  assert.equal(code, 0, output);
});

Deno.test("the points of a second person can't be erased under the pseudonym of the first", async () => {
  await using stack = await startStack();
  const { entitlement: { url } } = stack;
  await grantPoints(url, user);
  await reserve(url, { user_id: "bob", execute_at: later });
  const operation_id = crypto.randomUUID();
  await untilErased(stack, { operation_id });
  await assert.rejects(
    erase(stack, { operation_id, user_id: "bob" }),
    /operation_id belongs to a finished erasure/,
  );
  await grant(url, { user_id: "bob" });
});

// deno-lint-ignore no-explicit-any
function erase({ entitlement }: Stack, more: Record<string, string> = {}): Promise<any> {
  return operate(entitlement.url, "/operations/entitlement/erase-user", {
    user_id: user.user_id,
    ...more,
  });
}

async function untilErased(stack: Stack, more: Record<string, string> = {}): Promise<void> {
  await until("nothing is on its way", async () => (await erase(stack, more)).outcome === "ERASED");
}

const tables = [
  ...["entitlements", "outbox_events", "outbox_attempts", "entitlement_audit", "operations"],
  ...["unreceived_events", "point_root", "point_transactions", "point_reservations"],
  ...["reservation_attempts", "erased_keys"],
];

async function traces(ownerUrl: string): Promise<string[]> {
  const found = await Promise.all(tables.map((table) =>
    ask<{ place: string }>(
      ownerUrl,
      `select distinct '${table}' as place from ${table} row where row::text ~ 'secret'`,
    )
  ));
  const keys = await ask<{ place: string }>(
    ownerUrl,
    `select distinct 'idempotency_keys' || case
       when row_to_json(stored)::jsonb - 'idem_key' is null then ''
       when (row_to_json(stored)::jsonb - 'idem_key')::text ~ 'secret' then ''
       else ': the keys until they expire' end as place
     from idempotency_keys stored where stored::text ~ 'secret'`,
  );
  return [...found.flat(), ...keys].map(({ place }) => place);
}

async function countRows(ownerUrl: string): Promise<Record<string, number>> {
  const counted = tables.filter((table) => !["operations", "erased_keys"].includes(table))
    .map(async (table) => {
      const [row] = await ask<{ n: number }>(ownerUrl, `select count(*)::int as n from ${table}`);
      return [table, row?.n ?? 0] as const;
    });
  return Object.fromEntries(await Promise.all(counted));
}

async function balances(ownerUrl: string): Promise<number[]> {
  const rows = await ask<{ balance: number }>(
    ownerUrl,
    "select balance::int from point_root order by balance",
  );
  return rows.map(({ balance }) => balance);
}
