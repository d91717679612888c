// The retention of the account service deletes rows past their retention, and nothing else.
import assert from "node:assert/strict";
import { cleanAccount } from "../../account/retention.ts";
import { deleteBatchSize } from "../../shared/process/retention.ts";
import { ask, withClient } from "../../tools/servers/asking.ts";
import { openFresh } from "../support/databases.ts";
import { collectingLog } from "../support/relays.ts";

const day = 24 * 3_600_000;
type Place = Awaited<ReturnType<typeof openFresh>>;

async function clean({ database }: Place, auditDays = 400): Promise<string[]> {
  const { log, lines } = collectingLog();
  const options = { publishedTtlMs: day, auditDays };
  await cleanAccount(database, options, log, new AbortController().signal);
  return lines;
}

function insertAudit({ ownerUrl }: Place, age: string, count: number): Promise<unknown> {
  return ask(
    ownerUrl,
    `insert into audit_logs (audit_id, occurred_at, user_id, action, actor, version, trace_id)
     select gen_random_uuid(), now() - $1::interval, gen_random_uuid(), 'UPDATE', $1, 1, 't'
     from generate_series(1, $2)`,
    [age, count],
  );
}

async function auditAges({ ownerUrl }: Place): Promise<string[]> {
  const rows = await ask<{ actor: string }>(
    ownerUrl,
    "select actor from audit_logs order by occurred_at",
  );
  return rows.map(({ actor }) => actor);
}

Deno.test("an ended session is deleted an hour after it would have expired, and not before", async () => {
  await using place = await openFresh("account");
  await ask(
    place.ownerUrl,
    `insert into ended_sessions (session_id, user_id, ended_at, expires_at)
     select gen_random_uuid(), gen_random_uuid(), now() - interval '1 year', now() + age::interval
     from unnest(array['-59 minutes', '-61 minutes', '-1 year', '1 minute']) as age`,
  );
  await clean(place);
  const left = await ask(
    place.ownerUrl,
    "select from ended_sessions where expires_at > now() - interval '1 hour'",
  );
  const all = await ask(place.ownerUrl, "select from ended_sessions");
  assert.deepEqual([left.length, all.length], [2, 2]);
});

Deno.test("only events of accounts that were published a day ago are deleted", async () => {
  await using place = await openFresh("account");
  await ask(
    place.ownerUrl,
    `insert into outbox_events (event_id, event_type, aggregate_key, payload, status, published_at)
     select gen_random_uuid(), 'UserUpdated', n::text, '{}', status, now() - age
     from (values
       (1, 'PUBLISHED', interval '25 hours'),
       (2, 'PUBLISHED', interval '23 hours 59 minutes'),
       (3, 'PENDING', null),
       (4, 'IN_FLIGHT', interval '30 days'),
       (5, 'FAILED', interval '30 days'),
       (6, 'FAILED', null)
     ) as aged (n, status, age)`,
  );
  await clean(place);
  const kept = await ask<{ key: string }>(
    place.ownerUrl,
    "select aggregate_key as key from outbox_events order by 1",
  );
  assert.deepEqual(kept.map(({ key }) => key), ["2", "3", "4", "5", "6"]);
});

Deno.test("the audit is kept for as long as the setting says", async () => {
  await using place = await openFresh("account");
  for (const age of ["401 days", "399 days", "1 day"]) await insertAudit(place, age, 1);
  await clean(place, 500);
  assert.equal((await auditAges(place)).length, 3);
  await clean(place);
  assert.deepEqual(await auditAges(place), ["399 days", "1 day"]);
});

Deno.test("the service can delete no audit row before the owner allows it", async () => {
  await using place = await openFresh("account");
  await insertAudit(place, "399 days", 1);
  for (const days of [1, 0, -1_000_000, null]) {
    const [row] = (await place.database.query("select delete_old_audit($1)", [days])).rows;
    assert.deepEqual(row, { delete_old_audit: 0 }, `${days}`);
  }
  await clean(place, 1);
  assert.equal((await auditAges(place)).length, 1);
  for (
    const statement of [
      "delete from audit_logs",
      "update audit_logs set reason = 'x'",
      "truncate audit_logs",
      "update audit_retention set keep_days = 1",
      "delete from users",
    ]
  ) {
    await assert.rejects(place.database.query(statement), /permission denied/, statement);
  }
  await ask(place.ownerUrl, "update audit_retention set keep_days = 100");
  await clean(place, 1);
  assert.equal((await auditAges(place)).length, 0);
});

Deno.test("two replicas delete old audit rows in batches, and pass over locked rows", async () => {
  await using place = await openFresh("account");
  const old = 3 * deleteBatchSize + 17;
  await insertAudit(place, "500 days", old);
  await insertAudit(place, "600 days", 1);
  await withClient(place.ownerUrl, async (holder) => {
    await holder.query("begin; select from audit_logs where actor = '600 days' for update");
    await Promise.all([clean(place), clean(place)]);
  });
  assert.deepEqual(await auditAges(place), ["600 days"]);
});
