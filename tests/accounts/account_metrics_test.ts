// Logins and changes of accounts are counted by how they ended.
import assert from "node:assert/strict";
import { resolve, send, startAccount } from "../support/account.ts";
import { samplesOf, scrapeOf } from "../support/metrics.ts";

Deno.test("logins and changes are counted by their result", async () => {
  await using account = await startAccount();
  const { user_id } = await resolve(account, { provider: "p", subject: "s" });
  for (let i = 0; i < 2; i++) await resolve(account, { provider: "p", subject: "s" });
  const path = `${account.url}/v1/users/${user_id}`;
  const session = crypto.randomUUID();
  const expires_at = new Date(Date.now() + 60_000).toISOString();
  await send("PATCH", path, { locale: "en" });
  await send("PATCH", path, { locale: "" });
  await send("PATCH", path, { locale: "de" }, { "If-Match": '"1"' });
  await send("PUT", `${path}/roles`, { roles: ["ADMIN"] });
  await send("PUT", `${path}/roles`, { roles: ["OWNER"] });
  await send("POST", `${path}:suspend`, { reason: "spam" }); // the last ADMIN
  await send("POST", `${path}:resume`, { reason: "a mistake" });
  await send("POST", `${path}/sessions:end`);
  await send("POST", `${account.url}/v1/identities:end-sessions`, { provider: "p", subject: "s" });
  await send("POST", `${account.url}/v1/sessions/${session}:end`, { user_id, expires_at });
  const scraped = await scrapeOf(account);
  const counted = (name: string) =>
    samplesOf(scraped, name).filter(({ value }) => value > 0)
      .map(({ labels, value }) => [...Object.values(labels), value].join(" ")).sort();
  assert.deepEqual(counted("account_resolve_total"), ["known 2", "registered 1"]);
  assert.deepEqual(counted("account_command_total"), [
    "end_session applied 1",
    "end_sessions applied 2",
    "profile applied 1",
    "profile invalid 1",
    "profile state_conflict 1",
    "resume applied 1",
    "roles applied 1",
    "roles invalid 1",
    "suspend state_conflict 1",
  ]);
});
