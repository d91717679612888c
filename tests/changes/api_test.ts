// The HTTP API of the entitlement service: rules of state, idempotency, and the form of answers.
import assert from "node:assert/strict";
import { type Answer, assertError, grant, list, post, revoke, someFields } from "../support/api.ts";
import { withClient } from "../support/databases.ts";
import { type Entitlement, startEntitlement } from "../support/entitlement.ts";
import { until } from "../../tools/servers/wait.ts";

let kenri: Entitlement;
let url: string;

Deno.test.beforeAll(async () => {
  kenri = await startEntitlement();
  url = kenri.url;
});
Deno.test.afterAll(() => kenri.close());

const counts = () => kenri.counts();
const newUser = () => ({ user_id: `user ${crypto.randomUUID()}` });
const rfc3339Utc = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;

Deno.test("each change answers with the entitlement after it, one version higher", async () => {
  const user = newUser();
  const statuses = ["ACTIVE", "REVOKED", "ACTIVE", "REVOKED"];
  for (const [i, status] of statuses.entries()) {
    const change = status === "ACTIVE" ? grant : revoke;
    const { status: code, json, headers } = await change(url, user);
    assert.equal(code, 200);
    assert.equal(headers.get("Content-Type"), "application/json");
    assert.equal(headers.get("Idempotency-Replayed"), null);
    const { updated_at, ...rest } = json;
    const expected = { ...user, stock_keeping_unit: "book", status, version: i + 1 };
    assert.deepEqual(rest, expected);
    assert.match(updated_at, rfc3339Utc);
  }
});

Deno.test("an item that was never granted can be revoked, because a refund may overtake its purchase", async () => {
  const { status, json } = await revoke(url, newUser());
  assert.deepEqual([status, json.status, json.version], [200, "REVOKED", 1]);
});

Deno.test("a change to the current state is refused, and only the refusal is stored", async () => {
  const user = newUser();
  for (
    const [change, message] of [[grant, "already ACTIVE"], [revoke, "already REVOKED"]] as const
  ) {
    await change(url, user);
    const row = () => kenri.rows("select * from entitlements where user_id = $1", [user.user_id]);
    const [before, rowBefore] = [await counts(), await row()];
    const key = crypto.randomUUID();
    const refusal = await change(url, user, key);
    assertError(refusal, 409, "ENTITLEMENT_STATE_CONFLICT", message);
    assert.deepEqual(await row(), rowBefore);
    assert.deepEqual(await counts(), {
      ...before,
      idempotency_keys: before.idempotency_keys + 1,
    });
    assertReplay(await change(url, user, key), refusal);
  }
});

function assertReplay(replay: Answer, first: Answer): void {
  assert.equal(first.headers.get("Idempotency-Replayed"), null);
  assert.equal(replay.headers.get("Idempotency-Replayed"), "true");
  assert.equal(replay.status, first.status);
  assert.equal(replay.text, first.text);
}

Deno.test("a repeated request gets the first answer byte for byte, even after later changes", async () => {
  const user = newUser();
  const first = await grant(url, user, "replay-1");
  assertReplay(await grant(url, user, "replay-1"), first);
  await revoke(url, user);
  const before = await counts();
  assertReplay(await grant(url, user, "replay-1"), first);
  assert.deepEqual(await counts(), before);
});

Deno.test("a refusal is replayed even if the request would succeed now", async () => {
  const user = newUser();
  await grant(url, user);
  const refusal = await grant(url, user, "replay-2");
  await revoke(url, user);
  assertReplay(await grant(url, user, "replay-2"), refusal);
});

Deno.test("a repeated request may differ in fields and headers that do not identify it", async () => {
  const user = newUser();
  const first = await post(url, "grants", { ...someFields, ...user }, "replay-3");
  const body = JSON.stringify({ unknown: [1], ...user, ...someFields, ...user }, null, 2);
  const headers = { "X-Trace-Id": "another", "Content-Type": "Application/JSON; charset=UTF-8" };
  assertReplay(await post(url, "grants", body, "replay-3", headers), first);
});

Deno.test("a key used for another request is refused, and the refusal is not stored", async () => {
  const user = newUser();
  const first = await grant(url, user, "conflict-1");
  const before = await counts();
  const others = [
    () => revoke(url, user, "conflict-1"),
    () => grant(url, newUser(), "conflict-1"),
    ...["stock_keeping_unit", "reason", "purchase_id"].map((field) => () =>
      grant(url, { ...user, [field]: "other" }, "conflict-1")
    ),
  ];
  for (const other of others) {
    const refusal = await other();
    assertError(refusal, 409, "IDEMPOTENCY_KEY_CONFLICT");
    assert.equal(refusal.headers.get("Idempotency-Replayed"), null);
  }
  assert.deepEqual(await counts(), before);
  assertReplay(await grant(url, user, "conflict-1"), first);
});

Deno.test("a key can be used again once it has expired, and not before", async () => {
  const user = newUser();
  await grant(url, user, "expires-1");
  const [ttl] = await kenri.rows<{ hours: number }>(
    `select extract(epoch from expires_at - created_at)::int / 3600 as hours
     from idempotency_keys where idem_key = 'expires-1'`,
  );
  assert.equal(ttl?.hours, 24);
  assertError(await revoke(url, user, "expires-1"), 409, "IDEMPOTENCY_KEY_CONFLICT");
  await kenri.rows("update idempotency_keys set expires_at = now() where idem_key = 'expires-1'");
  const second = await revoke(url, user, "expires-1");
  assert.deepEqual([second.status, second.json.version], [200, 2]);
  assertReplay(await revoke(url, user, "expires-1"), second);
});

Deno.test("an expired key can be used again while clients repeat their requests in waves", async () => {
  const user = newUser();
  await grant(url, user, "expires-2");
  const revoked = await revoke(url, user, "expires-3");
  await kenri.rows("update idempotency_keys set expires_at = now() where idem_key = 'expires-2'");
  assertReplay(await revoke(url, user, "expires-3"), revoked); // now replays are looked for first
  const again = await grant(url, user, "expires-2");
  assert.deepEqual([again.status, again.json.version], [200, 3], again.text);
  assert.equal(again.headers.get("Idempotency-Replayed"), null);
});

Deno.test("each change is later than the one before, even if the clock of the database was set back", async () => {
  const user = newUser();
  const first = (await grant(url, user)).json;
  const [before] = await kenri.rows<{ updated_at: string }>(
    `with ahead as (
       update outbox_events set created_at = created_at + interval '1 hour'
       where payload->>'user_id' = $1
     )
     update entitlements set updated_at = updated_at + interval '1 hour'
     where user_id = $1
     returning to_char(updated_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as updated_at`,
    [user.user_id],
  );
  const [second, third] = [(await revoke(url, user)).json, (await grant(url, user)).json];
  const times = [first.updated_at, before?.updated_at, second.updated_at, third.updated_at];
  assert.deepEqual(times, [...new Set(times)].sort(), "each is later than the one before");
  const events = await kenri.rows<{ version: number }>(
    `select (payload->>'version')::int as version
     from outbox_events
     where payload->>'user_id' = $1
     order by created_at, event_id desc`,
    [user.user_id],
  );
  assert.deepEqual(events.map(({ version }) => version), [1, 2, 3]);
});

Deno.test("concurrent requests with one key are one change, and the others wait for its answer", async () => {
  const user = newUser();
  const before = await counts();
  const answers = await Promise.all(Array.from({ length: 20 }, () => grant(url, user, "at-once")));
  const first = answers.filter(({ headers }) => headers.get("Idempotency-Replayed") === null);
  assert.equal(first.length, 1);
  assert.deepEqual(new Set(answers.map(({ text }) => text)).size, 1);
  assert.equal((await counts()).outbox_events, before.outbox_events + 1);
});

Deno.test("a request waits while another transaction holds the lock of its key, and other requests do not", async () => {
  await withClient(kenri.database.ownerUrl, async (holder) => {
    await holder.query("begin; select pg_advisory_xact_lock(-3433042825297469223)");
    let answered = false;
    const waiting = grant(url, newUser(), "idem-1").finally(() => answered = true);
    await until("it waits for the lock", async () => {
      const { rows } = await holder.query(
        "select from pg_locks where locktype = 'advisory' and not granted and database = " +
          "(select oid from pg_database where datname = current_database())",
      );
      return rows.length === 1;
    });
    assert.equal((await grant(url, newUser(), "idem-2")).status, 200);
    assert.equal(answered, false);
    await holder.query("commit");
    assert.equal((await waiting).status, 200);
  });
});

Deno.test("the list has the most recently changed entitlement first and includes revoked ones", async () => {
  const user = newUser();
  const changed = [];
  for (const change of [grant, revoke]) {
    for (const stock_keeping_unit of ["b", "a", "c"]) {
      if (change === revoke && stock_keeping_unit === "b") continue;
      changed.unshift((await change(url, { ...user, stock_keeping_unit })).json);
    }
  }
  const newest = changed.filter(({ status }, i) => status === "REVOKED" || i === 4);
  const { status, json } = await list(url, user.user_id);
  assert.equal(status, 200);
  assert.deepEqual(json, {
    ...user,
    entitlements: newest.map(({ user_id: _, ...entitlement }) => entitlement),
  });
  assert.deepEqual(json.entitlements.map((e: typeof someFields) => e.stock_keeping_unit), [
    ...["c", "a", "b"],
  ]);
});

Deno.test("an unknown user has an empty list", async () => {
  const user = newUser();
  assert.deepEqual((await list(url, user.user_id)).json, { ...user, entitlements: [] });
});

Deno.test("any text can name a user or a stock keeping unit, whatever it means elsewhere", async () => {
  const names = [
    "a/b?c#d&e",
    "100%",
    "%41",
    "%2F",
    "a:b",
    "日本語 🎫",
    "'; --",
    "\\u0000",
    "é",
    "e\u0301",
  ];
  for (const name of names) {
    const answer = await grant(url, { user_id: name, stock_keeping_unit: name });
    assert.equal(answer.status, 200, answer.text);
    const { user_id, ...entitlement } = answer.json;
    assert.equal(user_id, name);
    assert.deepEqual((await list(url, name)).json, { user_id, entitlements: [entitlement] });
  }
});
