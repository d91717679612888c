// The statements of the account service read a few rows by index, with 100,000 users.
import assert from "node:assert/strict";
import { withClient } from "../../tools/servers/asking.ts";
import { type Account, resolve, send, startAccount } from "../support/account.ts";

const users = 100_000;

Deno.test("what requests read does not grow with the number of users, sessions and audit rows", async () => {
  await using account = await startAccount({ ACCOUNT_RETENTION_ENABLED: "false" });
  await askAll(account, "before"); // by now PostgreSQL keeps the plans
  await fill(account);
  for (let i = 0; i < 5; i++) await askAll(account, `after-${i}`);
  await account.service.stop(); // the counters are complete once the sessions have ended
  const read = await account.rows<{ table: string; scans: number; rows: number }>(
    `select relname as table, seq_tup_read::int as scans, coalesce(idx_tup_fetch, 0)::int as rows
     from pg_stat_user_tables
     where relname <> 'schema_migrations'`,
  );
  for (const { table, scans, rows } of read) {
    assert.ok(scans < 100, `${scans} rows of ${table} were read by scans`);
    assert.ok(rows < 1_500, `${rows} rows of ${table} were read by index`);
  }
});

async function askAll({ url }: Account, name: string): Promise<void> {
  const identity = { provider: "p", subject: name, email: `${name}@example.com` };
  const session = crypto.randomUUID();
  const expires_at = new Date(Date.now() + 60_000).toISOString();
  const answers: number[] = [];
  for (let i = 0; i < 6; i++) {
    const { user_id } = await resolve({ url }, identity);
    const path = `${url}/v1/users/${user_id}`;
    const all = [
      await send("GET", path),
      await send("PATCH", path, { display_name: `${name} ${i}` }),
      await send("PUT", `${path}/roles`, { roles: i % 2 ? ["USER"] : ["USER", "ADMIN"] }),
      await send("POST", `${path}:suspend`, { reason: "spam" }),
      await send("POST", `${path}:resume`, { reason: "a mistake" }),
      await send("POST", `${url}/v1/sessions/${session}:end`, { user_id, expires_at }),
      await send("POST", `${path}/sessions:end`),
      await send("POST", `${url}/v1/identities:end-sessions`, { provider: "p", subject: name }),
      await send("GET", `${url}/v1/sessions/${session}?user_id=${user_id}`),
      await send("GET", `${url}/v1/sessions/ended?limit=5`),
      await send("GET", `${path}/audit?limit=5`),
    ];
    answers.push(...all.map(({ status }) => status));
  }
  assert.deepEqual(answers.filter((status) => status >= 400 && status !== 409), []);
}

function fill({ database }: Account): Promise<void> {
  return withClient(database.ownerUrl, async (owner) => {
    await owner.query(
      `insert into users (user_id, display_name)
       select md5('user ' || n)::uuid, 'Name ' || n from generate_series(1, ${users}) as n`,
    );
    await owner.query(
      `insert into identities (provider, subject, user_id, email)
       select 'other', n::text, md5('user ' || n)::uuid, n || '@example.com'
       from generate_series(1, ${users}) as n`,
    );
    await owner.query(
      `insert into account_roles (user_id, role)
       select md5('user ' || n)::uuid, 'USER' from generate_series(1, ${users}) as n`,
    );
    await owner.query(
      `insert into account_roles (user_id, role)
       select md5('user ' || n)::uuid, 'ADMIN' from generate_series(1, 200) as n`,
    );
    await owner.query(
      `insert into audit_logs (audit_id, occurred_at, user_id, action, actor, version, trace_id)
       select gen_random_uuid(), now(), md5('user ' || n)::uuid, 'REGISTER', 'p', 1, 't'
       from generate_series(1, ${users}) as n`,
    );
    await owner.query(
      `insert into ended_sessions (session_id, user_id, ended_at, expires_at)
       select gen_random_uuid(), md5('user ' || n)::uuid, now(), now() + interval '1 day'
       from generate_series(1, ${users}) as n`,
    );
    await owner.query("select pg_stat_reset()");
  });
}
