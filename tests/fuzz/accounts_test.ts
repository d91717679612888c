// Every request to the account service is answered as its description says, and none leaves it with
// an account whose history does not add up.
import assert from "node:assert/strict";
import { startAccount } from "../support/account.ts";
import { askAnything, credentials } from "./ask_anything.ts";

Deno.test("any request is answered as the API of accounts describes, and every change has its event and its audit", async () => {
  await using account = await startAccount({ ...credentials, ACCOUNT_DEBUG_ENABLED: "true" });
  await askAnything(account.url, { runs: 120, rare: ["409"] });
  const errors = account.service.log.filter(({ level }) => level === "error" || level === "fatal");
  assert.deepEqual(errors, []);
  const [counts] = await account.rows<Record<string, number>>(
    `select (select count(*)::int from audit_logs) as audit,
       (select count(*)::int from outbox_events) as events,
       (select count(*)::int from audit_logs where action = 'REGISTER') as registered,
       (select count(*)::int from users) as users,
       (select count(*)::int from users where status <> 'DELETED') as kept,
       (select count(*)::int from identities) as identities`,
  );
  assert.ok(counts);
  const { audit, events, registered, users, kept, identities } = counts;
  assert.deepEqual([events, registered, identities], [audit, users, kept]);
});
