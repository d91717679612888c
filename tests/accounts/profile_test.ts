// what a PATCH leaves unchanged, and what If-Match refuses.
import assert from "node:assert/strict";
import { type Account, resolve, send, startAccount } from "../support/account.ts";
import { assertError } from "../support/api.ts";

let account: Account;
Deno.test.beforeAll(async () => {
  account = await startAccount();
});
Deno.test.afterAll(() => account.close());

async function newUser(): Promise<{ path: string; user_id: string }> {
  const subject = crypto.randomUUID();
  const { user_id } = await resolve(account, { provider: "p", subject, name: "Ann" });
  return { path: `${account.url}/v1/users/${user_id}`, user_id };
}

function eventsOf(user_id: string): Promise<{ event_type: string; version: number }[]> {
  return account.rows(
    `select event_type, (payload->>'version')::int as version
     from outbox_events where aggregate_key = $1 order by created_at`,
    [user_id],
  );
}

Deno.test("A-102: a PATCH of one field keeps the other, and null clears a field", async () => {
  const { path, user_id } = await newUser();
  const shown = async (fields: unknown) => {
    const { status, headers, json } = await send("PATCH", path, fields);
    assert.equal(status, 200);
    assert.equal(headers.get("ETag"), `"${json.version}"`);
    return [json.display_name, json.locale, json.version];
  };
  assert.deepEqual(await shown({ locale: "en-GB" }), ["Ann", "en-GB", 2]);
  assert.deepEqual(await shown({ display_name: "Ann B" }), ["Ann B", "en-GB", 3]);
  assert.deepEqual(await shown({ display_name: null }), [null, "en-GB", 4]);
  assert.deepEqual(await shown({ locale: "de", display_name: "A" }), ["A", "de", 5]);
  const unchanged = [{}, { locale: "de" }, { display_name: "A", locale: "de" }, { status: "X" }];
  for (const fields of unchanged) assert.deepEqual(await shown(fields), ["A", "de", 5]);
  const types = (await eventsOf(user_id)).map(({ event_type }) => event_type);
  assert.deepEqual(types, ["UserRegistered", ...Array(4).fill("UserUpdated")]);
  const { json, headers } = await send("GET", path);
  assert.deepEqual(Object.keys(json), [
    ...["user_id", "display_name", "locale", "status", "roles", "version"],
    ...["created_at", "updated_at"],
  ]);
  assert.equal(headers.get("ETag"), '"5"');
});

Deno.test("A-102: of 32 changes of the same version only one is made", async () => {
  const { path, user_id } = await newUser();
  const answers = await Promise.all(Array.from(
    { length: 32 },
    (_, i) => send("PATCH", path, { display_name: `Ann ${i}` }, { "If-Match": '"1"' }),
  ));
  const made = answers.filter(({ status }) => status === 200);
  assert.equal(made.length, 1);
  const message = "the account was changed since this version";
  for (const answer of answers.filter(({ status }) => status !== 200)) {
    assertError(answer, 412, "PRECONDITION_FAILED", message);
  }
  const { json } = await send("GET", path);
  assert.deepEqual(json, made[0]?.json);
  assert.deepEqual(await eventsOf(user_id), [
    { event_type: "UserRegistered", version: 1 },
    { event_type: "UserUpdated", version: 2 },
  ]);
});

Deno.test("without If-Match every change is made, and each gets a version of its own", async () => {
  const { path } = await newUser();
  const answers = await Promise.all(
    Array.from({ length: 32 }, (_, i) => send("PATCH", path, { display_name: `Ann ${i}` })),
  );
  const versions = answers.map(({ json }) => json.version).sort((a, b) => a - b);
  assert.deepEqual(versions, Array.from({ length: 32 }, (_, i) => i + 2));
});

Deno.test("If-Match takes a list and *, and neither a weak tag nor another version matches", async () => {
  const { path } = await newUser();
  const cases: [string, number][] = [
    ...[['"1"', 200], ['"9", "2"', 200], ["*", 200], ['"3"', 412], ['W/"4"', 412]] as const,
    ...[["4", 412], ["", 412], ['"04"', 412], ['"4', 412], ['"4"', 200]] as const,
  ].map(([tag, status]) => [tag, status]);
  for (const [i, [tag, expected]] of cases.entries()) {
    const { status } = await send("PATCH", path, { locale: `en-${i}` }, { "If-Match": tag });
    assert.equal(status, expected, tag);
  }
});

Deno.test("the end of sessions leaves the version, so that If-Match still matches", async () => {
  const { path } = await newUser();
  const { status } = await send("POST", `${path}/sessions:end`);
  assert.equal(status, 204);
  const patched = await send("PATCH", path, { locale: "en" }, { "If-Match": '"1"' });
  assert.deepEqual([patched.status, patched.json.version], [200, 2]);
});
