// `ops erase-user`: afterwards nothing in either database leads to the user, the numbers of rows
// are the same, and the audit is still valid.
import assert from "node:assert/strict";
import { openDatabase } from "../../shared/postgres/postgres.ts";
import { type Answer, assertError, call, grant, revoke } from "../support/api.ts";
import { ask } from "../../tools/servers/asking.ts";
import { capture } from "./dead_letters.ts";
import { eventOf } from "../support/events.ts";
import { countsOf, untilSent } from "../support/notification.ts";
import { ops } from "./ops.ts";
import { changeAsBefore } from "../database/release_before.ts";
import { grantPoints } from "../support/points.ts";
import { failingSends, look, type Stack, startStack } from "../support/stack.ts";
import { until } from "../../tools/servers/wait.ts";

const user_id = "unlucky-ann";
const asked = ["--reason", "asked for it, case 7"];
Deno.test("nothing leads to a user who was erased, and all counts are as they were", async () => {
  await using stack = await startStack({
    notification: { ...failingSends, NOTIFICATION_DELIVERY_PREDECESSOR_WAIT: "100ms" },
  });
  const { entitlement, notification, place } = stack;
  await before(entitlement.database.ownerUrl, user_id); // audit rows that no chain leads to
  const first = await grant(entitlement.url, { user_id, purchase_id: "p-secret" }, "key-1");
  await revoke(entitlement.url, { user_id });
  await grant(entitlement.url, { user_id, stock_keeping_unit: "film" });
  await grant(entitlement.url, { user_id: `${user_id}-too` });
  await grantPoints(entitlement.url, { user_id, source_id: "p-secret" });
  await until("all are dead", async () => (await countsOf(place)).notification_dlq === 5);
  await capture(place.ownerUrl, eventOf({ userId: user_id }));
  await capture(place.ownerUrl, eventOf({ userId: `${user_id}-too` }));
  const counts = await countRows(stack);
  assert.ok((await traces(stack)).length >= 7, `${await traces(stack)}`);
  const dry = await ops(stack, "erase-user", user_id, ...asked, "--dry-run");
  assert.deepEqual([dry.code, await countRows(stack)], [0, counts]);
  assert.match(dry.output, /^\d+ rows would be erased\.$/m);
  const { code, output, errors } = await ops(stack, "erase-user", user_id, ...asked);
  assert.equal(code, 0, errors);
  assert.match(output, /^\d+ rows erased\./m);
  assert.deepEqual(await traces(stack), []);
  assert.deepEqual(await countRows(stack), { ...counts, processed_events: 6, erased_keys: 1 });

  const keyed = "select from notifications where aggregate_key ~ '^points:[^:]+:points$'";
  assert.equal((await ask(place.ownerUrl, keyed)).length, 1);
  const verified = await ops(stack, "audit", "verify", "--json");
  const { problems, erased } = JSON.parse(verified.output);
  assert.deepEqual([verified.code, problems, erased], [0, [], 4]);
  const again = await grant(entitlement.url, { user_id, purchase_id: "p-secret" }, "key-1");
  assertError(again, 409, "IDEMPOTENCY_KEY_CONFLICT");
  assert.ok(first.text.includes(user_id));
  assert.equal((await grant(entitlement.url, { user_id })).json.version, 1, "a new user");
  for (const [name, { url }] of Object.entries({ entitlement, notification })) {
    const { operations: [record] } = await look(url, `/debug/${name}/operations`);
    assert.deepEqual([record.kind, record.who, record.reason], ["ERASE_USER", "kim", asked[1]]);
  }
  const unknown = await ops(stack, "erase-user", "nobody", ...asked);
  assert.deepEqual([unknown.code, unknown.output], [0, "Nothing is known of this user.\n"]);
});

Deno.test("nobody is erased while an event of theirs is on its way", async (t) => {
  await using stack = await startStack({
    notification: { ...failingSends, NOTIFICATION_DELIVERY_MAX_ATTEMPTS: "1000" },
  });
  const { entitlement, place } = stack;
  const isRefused = async () => {
    const before = await traces(stack);
    const { code, output } = await ops(stack, "erase-user", user_id, ...asked);
    assert.equal(code, 1, output);
    assert.match(output, /still on the way/);
    assert.deepEqual(await traces(stack), before);
  };
  await grant(entitlement.url, { user_id });
  await until("it is tried", async () => (await countsOf(place)).notifications === 1);
  await t.step("to the user", isRefused);
  await ask(
    place.ownerUrl,
    "update notifications set status = 'SENT', sent_at = now(), claim_token = null",
  );
  await ask(place.ownerUrl, "delete from processed_events");
  await t.step("to the notification service", isRefused);
  await ask(
    entitlement.database.ownerUrl,
    `update outbox_events
     set status = 'PENDING', published_at = null, next_retry_at = now() + interval '1 hour'`,
  );
  await t.step("to the stream", isRefused);
  await ask(entitlement.database.ownerUrl, "update outbox_events set status = 'FAILED'");
  const given = await ops(stack, "erase-user", user_id, ...asked);
  assert.equal(
    given.code,
    0,
    `${given.output}${given.errors}: what was given up is not on its way`,
  );
});

Deno.test("a change during an erasure takes effect before or after it, and no audit chain breaks", async () => {
  await using stack = await startStack();
  const { entitlement, place } = stack;
  await grant(entitlement.url, { user_id: "ann" });
  await untilSent(place, 1);
  let over = false;
  const changing = (async () => {
    for (let version = 2; !over; version++) {
      await (version % 2 ? grant : revoke)(entitlement.url, { user_id: "ann" });
    }
  })();
  await until("she was erased in between", async () => {
    const { json } = await erase(entitlement.url, "entitlement", { user_id: "ann" });
    return json.outcome === "ERASED";
  });
  over = true;
  await changing;
  const { code, output } = await ops(stack, "audit", "verify");
  assert.equal(code, 0, output);
});

Deno.test("a pseudonym can't be erased again, and its audit chains stay valid", async () => {
  await using stack = await startStack();
  const { entitlement, notification, place } = stack;
  await grant(entitlement.url, { user_id });
  await untilSent(place, 1);
  assert.equal((await ops(stack, "erase-user", user_id, ...asked)).code, 0);
  const [erased] = await entitlement.rows<{ user_id: string; audit_id: string }>(
    "select user_id, audit_id, occurred_at from entitlement_audit",
  );
  const pseudonym = erased?.user_id ?? "";
  for (const [name, { url }] of Object.entries({ entitlement, notification })) {
    const answer = await erase(url, name, { user_id: pseudonym });
    const message = "user_id is the pseudonym of a user who was erased";
    assertError(answer, 400, "BAD_REQUEST", message);
  }
  // Not even the database role of the service can erase a pseudonym.
  await ask(
    entitlement.database.serviceUrl,
    `select erase_audited(operation_id, $1, array_agg(audit_id), array_agg(occurred_at))
     from operations, entitlement_audit
     group by operation_id`,
    [pseudonym],
  ).catch(() => {});
  const { code, output } = await ops(stack, "audit", "verify");
  assert.equal(code, 0, output);
});

Deno.test("a pseudonym is the same in both services, however its operation's id is written", async () => {
  await using stack = await startStack();
  const { entitlement, notification, place } = stack;
  await grant(entitlement.url, { user_id });
  await untilSent(place, 1);
  const operation_id = crypto.randomUUID().toUpperCase();
  for (const [name, { url }] of Object.entries({ entitlement, notification })) {
    assert.equal((await erase(url, name, { user_id, operation_id })).json.outcome, "ERASED");
  }
  const pseudonym = `erased-${operation_id.toLowerCase()}`;
  const ofAudit = await entitlement.rows("select user_id from entitlement_audit");
  const ofEvents = await entitlement.rows(
    "select payload->>'user_id' as user_id from outbox_events",
  );
  const ofNotifications = await ask(place.ownerUrl, "select user_id from notifications");
  assert.deepEqual([ofAudit, ofEvents, ofNotifications], Array(3).fill([{ user_id: pseudonym }]));
});

Deno.test("the id of a finished erasure can't be used for another user", async () => {
  await using stack = await startStack();
  const { entitlement: { url }, place } = stack;
  const operation_id = crypto.randomUUID();
  const eraseAgain = (user_id: string) => erase(url, "entitlement", { user_id, operation_id });
  for (const [i, user_id] of ["carl", "dora"].entries()) {
    await grant(url, { user_id });
    await untilSent(place, i + 1);
  }
  assert.equal((await eraseAgain("carl")).json.outcome, "ERASED");
  assert.equal(
    (await eraseAgain("carl")).json.outcome,
    "ERASED",
    "repeating a finished erasure is allowed",
  );
  const refused = await eraseAgain("dora");
  const message = "operation_id belongs to a finished erasure; leave it out";
  assertError(refused, 400, "BAD_REQUEST", message);
});

Deno.test("the record of an erasure does not name the user", async () => {
  await using stack = await startStack();
  const { code, errors } = await ops(stack, "erase-user", "ann", "--reason", "ann asked for it");
  assert.equal(code, 2);
  assert.match(errors, /reason must not name the user/);
});

function erase(url: string, service: string, fields: Record<string, string>): Promise<Answer> {
  return call(`${url}/operations/${service}/erase-user`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ ...fields, who: "kim", reason: "r" }),
  });
}

async function before(ownerUrl: string, user: string): Promise<void> {
  const database = openDatabase(ownerUrl, "before");
  for (const version of [1, 2]) await changeAsBefore(database, { user, version });
  await database.end();
  await ask(ownerUrl, "delete from outbox_events"); // as retention did long ago
}

const tables = {
  entitlement: [
    ...["entitlements", "idempotency_keys", "outbox_events", "outbox_attempts"],
    ...["entitlement_audit", "unreceived_events", "operations", "erased_keys"],
    ...["point_root", "point_transactions", "point_reservations", "reservation_attempts"],
  ],
  notification: [
    ...["notifications", "notification_dlq", "notification_nats_dlq", "delivery_attempts"],
    ...["processed_events", "operations", "outbox_orders", "order_attempts", "idempo_ledger"],
  ],
};

/** The tables that still lead to the user, users with longer names aside. */
async function traces({ entitlement, place }: Stack): Promise<string[]> {
  const urls = { entitlement: entitlement.database.ownerUrl, notification: place.ownerUrl };
  const found = Object.entries(tables).flatMap(([service, names]) =>
    names.map((name) =>
      ask<{ place: string }>(
        urls[service as keyof typeof urls],
        `select '${name}' as place from ${name} row
         where row::text ~ '${user_id}(?!-too)' or row::text ~ 'p-secret'
           or row::text ~ '${hexOf(user_id)}(?!${hexOf("-too")})'`,
      )
    )
  );
  return (await Promise.all(found)).flat().map(({ place }) => place);
}

function hexOf(text: string): string {
  return new TextEncoder().encode(text).toHex();
}

async function countRows({ entitlement, place }: Stack): Promise<Record<string, number>> {
  const count = async (url: string, name: string) => {
    const [row] = await ask<{ n: number }>(url, `select count(*)::int as n from ${name}`);
    return [name, row?.n ?? 0] as const;
  };
  const isData = (name: string) => name !== "operations";
  return Object.fromEntries(
    await Promise.all([
      ...tables.entitlement.filter(isData).map((name) =>
        count(entitlement.database.ownerUrl, name)
      ),
      ...tables.notification.filter(isData).map((name) => count(place.ownerUrl, name)),
    ]),
  );
}
