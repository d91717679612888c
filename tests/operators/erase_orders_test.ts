// Erasing a user from orders, from what receivers answered, from the ledger and from endpoints.
import assert from "node:assert/strict";
import { Hono } from "hono";
import { eraseUser } from "../../notification/operators/erase_user.ts";
import type { Database } from "../../shared/postgres/postgres.ts";
import { ask } from "../../tools/servers/asking.ts";
import { openFresh } from "../support/databases.ts";
import { insertAttempt, insertEndpoint, insertLedgerEntry, insertOrder } from "./order_rows.ts";

const user_id = "ann:lee%";

// deno-lint-ignore no-explicit-any
async function erase(database: Database, more: Record<string, unknown> = {}): Promise<any> {
  const decode = () => {
    throw new Error("there are no copies");
  };
  const answer = await new Hono().post("/", eraseUser(database, decode)).request("/", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ user_id, who: "kim", reason: "case 7", ...more }),
  });
  assert.equal(answer.status, 200, await answer.clone().text());
  return await answer.json();
}

/** Parked, retried, given up and sent ones, for an endpoint of this user, each answered with the user. */
async function ordersOf(ownerUrl: string, user: string): Promise<void> {
  const endpoint_id = await insertEndpoint(ownerUrl, { user_id: user, description: `of ${user}` });
  const stored = { endpoint_id, user_id: user, description: `of ${user}` };
  await ask(
    ownerUrl,
    `insert into idempotency_keys
     values ($1::text, '', 201, $2, now(), now()), ($1::text || '-2', '', 204, '', now(), now())`,
    [endpoint_id, JSON.stringify(stored)],
  );
  for (const status of ["PARKED", "FAILED", "ABORTED", "SUCCEEDED"] as const) {
    const order_id = await insertOrder(ownerUrl, { endpoint_id, status, user_id: user });
    await insertAttempt(ownerUrl, { order_id, endpoint_id, body: `unknown: ${user}` });
    if (status === "PARKED" || status === "FAILED") continue;
    await insertLedgerEntry(ownerUrl, order_id);
    await ask(
      ownerUrl,
      "update idempo_ledger set response_payload_json = to_json($2::text) where order_id = $1",
      [order_id, `unknown: ${user}`],
    );
  }
}

const tables = [
  "outbox_orders",
  "order_attempts",
  "idempo_ledger",
  "endpoints",
  "idempotency_keys",
];

/** How many rows lead to the user, by table. */
async function traces(ownerUrl: string, user: string): Promise<Record<string, number>> {
  const found = await Promise.all(tables.map(async (name) => {
    const rows = await ask(
      ownerUrl,
      `select from ${name} row
       where position($1 in row::text) > 0 or position($2 in row::text) > 0`,
      [user, user.replaceAll("%", "%25").replaceAll(":", "%3A")],
    );
    return [name, rows.length] as const;
  }));
  return Object.fromEntries(found.filter(([, count]) => count > 0));
}

Deno.test("nothing leads from orders, answers, the ledger or endpoints to an erased user, and others stay", async () => {
  await using place = await openFresh("notification");
  const { database, ownerUrl } = place;
  await ordersOf(ownerUrl, user_id);
  await ordersOf(ownerUrl, "bob");
  const [before, bob] = [await traces(ownerUrl, user_id), await traces(ownerUrl, "bob")];
  assert.deepEqual(before, {
    ...{ outbox_orders: 4, order_attempts: 4, idempo_ledger: 2, endpoints: 1, idempotency_keys: 1 },
  });
  const { rows } = await erase(database, { dry_run: true });
  assert.deepEqual([rows.outbox_orders, rows.endpoints], [4, 1]);
  assert.deepEqual(await traces(ownerUrl, user_id), before, "a dry run changes nothing");
  assert.equal((await erase(database)).outcome, "ERASED");
  assert.deepEqual(await traces(ownerUrl, user_id), {});
  assert.deepEqual(await traces(ownerUrl, "bob"), bob);

  const kept = await ask(
    ownerUrl,
    `select sent.status, last_error_code, ledger.status as ledger, ledger.request_digest,
       aggregate_key like endpoint_id || ':erased-%:book' as has_key, is_dead,
       order_request_json->'payload'->>'type' as type
     from outbox_orders sent
     join idempo_ledger ledger using (idempotency_key)
     where user_id like 'erased-%'
     order by sent.status, last_error_code`,
  );
  const all = { request_digest: "erased", has_key: true, type: "EntitlementGranted" };
  const withdrawn = { status: "ABORTED", last_error_code: "USER_ERASED", ledger: "FAILED" };
  assert.deepEqual(kept, [
    { ...withdrawn, is_dead: false, ...all },
    { ...withdrawn, is_dead: false, ...all },
    { status: "ABORTED", last_error_code: null, ledger: "FAILED", is_dead: true, ...all },
    { status: "SUCCEEDED", last_error_code: null, ledger: "SUCCEEDED", is_dead: false, ...all },
  ]);
  const again = await erase(database);
  assert.deepEqual([again.rows.outbox_orders, again.rows.endpoints], [0, 0]);
});

Deno.test("a user is not erased while one of their orders is being sent", async () => {
  await using place = await openFresh("notification");
  const { database, ownerUrl } = place;
  const endpoint_id = await insertEndpoint(ownerUrl);
  await insertOrder(ownerUrl, { endpoint_id, user_id, status: "SENDING" });
  await insertOrder(ownerUrl, { endpoint_id, user_id, status: "PARKED" });
  const before = await traces(ownerUrl, user_id);
  const waiting = await erase(database);
  assert.deepEqual([waiting.outcome, waiting.waiting], ["WAITING", 1]);
  assert.deepEqual(await traces(ownerUrl, user_id), before);
  await ask(ownerUrl, "update outbox_orders set status = 'FAILED' where status = 'SENDING'");
  assert.equal((await erase(database)).outcome, "ERASED");
  assert.deepEqual(await traces(ownerUrl, user_id), {});
});
