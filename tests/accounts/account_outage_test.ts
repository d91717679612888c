// What account answers while its database or NATS is away, and what has happened afterwards.
import assert from "node:assert/strict";
import { startNats } from "../../tools/servers/nats.ts";
import { startService } from "../../tools/servers/service_process.ts";
import { until } from "../../tools/servers/wait.ts";
import { resolve, send, startAccount } from "../support/account.ts";
import { assertError } from "../support/api.ts";
import { ownDatabase } from "../support/databases.ts";
import { storedEvents, untilAll } from "../support/outbox.ts";
import { freshStreamNames, natsUrl } from "../support/streams.ts";

Deno.test("without its database every request is asked to come back, and nothing was made", async () => {
  await using database = await ownDatabase("account");
  const { stream, subject } = freshStreamNames();
  await using service = await startService("account", {
    ACCOUNT_DATABASE_URL: database.serviceUrl,
    ACCOUNT_NATS_STREAM: stream,
    ACCOUNT_NATS_SUBJECT: subject,
    NATS_URL: natsUrl,
  });
  const { url } = service;
  const identity = { provider: "p", subject: "s", name: "Ann" };
  const { user_id } = await resolve(service, identity);
  const path = `${url}/v1/users/${user_id}`;
  const session = crypto.randomUUID();
  const expires_at = new Date(Date.now() + 60_000).toISOString();
  await database.server.kill();
  const answers = await Promise.all([
    send("POST", `${url}/v1/identities:resolve`, { ...identity, subject: "other" }),
    send("POST", `${url}/v1/identities:end-sessions`, identity),
    send("GET", path),
    send("PATCH", path, { display_name: "Bob" }),
    send("POST", `${path}:suspend`, { reason: "spam" }),
    send("PUT", `${path}/roles`, { roles: [] }),
    send("POST", `${path}/sessions:end`),
    send("POST", `${url}/v1/sessions/${session}:end`, { user_id, expires_at }),
    send("GET", `${url}/v1/sessions/${session}?user_id=${user_id}`),
    send("GET", `${url}/v1/sessions/ended`),
    send("GET", `${path}/audit`),
  ]);
  for (const answer of answers) {
    assertError(answer, 503, "SERVICE_UNAVAILABLE");
    assert.match(answer.headers.get("Retry-After") ?? "", /^[1-9]\d*$/);
  }
  await database.server.start();
  await until("it answers", async () => (await send("GET", path)).status === 200);
  const { json } = await send("GET", `${path}/audit`);
  assert.deepEqual(json.audit.map(({ action }: { action: string }) => action), ["REGISTER"]);
  assert.deepEqual(await resolve(service, identity), {
    ...{ user_id, account_status: "ACTIVE", roles: ["USER"], session_epoch: 1, is_new: false },
  });
});

Deno.test("without NATS accounts are changed, and their events follow when it is back", async () => {
  await using nats = await startNats();
  await using account = await startAccount({ NATS_URL: nats.url });
  const { user_id } = await resolve(account, { provider: "p", subject: "s" });
  await untilAll(account.database.ownerUrl, "PUBLISHED");
  await nats.stop();
  const path = `${account.url}/v1/users/${user_id}`;
  const { status } = await send("POST", `${path}:suspend`, { reason: "spam" });
  assert.equal(status, 204);
  assert.equal((await send("POST", `${path}/sessions:end`)).status, 204);
  const other = await resolve(account, { provider: "p", subject: "other" });
  assert.ok(other.is_new);
  await nats.start();
  const rows = await untilAll(account.database.ownerUrl, "PUBLISHED");
  assert.deepEqual(rows.map(({ attempt_count }) => attempt_count), [0, 0, 0, 0]);
  const stored = await storedEvents(nats.url, account.stream);
  const typesOf = (user: string) =>
    stored.filter(({ key }) => key === user).map(({ headers }) => headers["event_type"]);
  assert.deepEqual(typesOf(user_id), ["UserRegistered", "UserSuspended", "SessionsEnded"]);
  assert.deepEqual(typesOf(other.user_id), ["UserRegistered"]);
});
