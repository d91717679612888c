// The events of accounts in the stream: each change once, in its order, with what a gateway decides by.
import assert from "node:assert/strict";
import { decodeAccountEvent } from "../../proto/account/decode.ts";
import { type Account, resolve, send, startAccount, startReplica } from "../support/account.ts";
import { newClient, tokensOf } from "../support/access.ts";
import { outboxRows, storedEvents, untilAll } from "../support/outbox.ts";
import { natsUrl } from "../support/streams.ts";

async function publishedBy({ database, stream }: Account) {
  await untilAll(database.ownerUrl, "PUBLISHED");
  return (await storedEvents(natsUrl, stream)).map(({ body, ...message }) => ({
    ...message,
    event: decodeAccountEvent(body),
  }));
}

Deno.test("each change is one event, with the account as it is after it", async () => {
  const gateway = newClient("gateway", "accounts:resolve", "accounts:write", "accounts:admin");
  await using account = await startAccount(tokensOf(gateway));
  const trace_id = "0af7651916cd43dd8448eb211c80319c";
  const headers = {
    "Authorization": `Bearer ${gateway.token}`,
    "traceparent": `00-${trace_id}-b7ad6b7169203331-01`,
  };
  const { user_id } = await resolve(
    account,
    { provider: "p", subject: "s", email: "ann@example.com", name: "Ann" },
    headers,
  );
  const ask = async (method: string, path: string, body?: unknown) => {
    const { status, text } = await send(method, account.url + path, body, headers);
    assert.ok(status < 300, text);
  };
  const session_id = crypto.randomUUID();
  const expires_at = new Date(Date.now() + 60_000).toISOString();
  await ask("PATCH", `/v1/users/${user_id}`, { display_name: "Ann B" });
  await ask("POST", `/v1/users/${user_id}:suspend`, { reason: "spam" });
  await ask("POST", `/v1/users/${user_id}:resume`, { reason: "a mistake" });
  await ask("PUT", `/v1/users/${user_id}/roles`, { roles: ["USER", "SUPPORT"] });
  await ask("POST", `/v1/users/${user_id}/sessions:end`);
  await ask("POST", `/v1/sessions/${session_id}:end`, { user_id, expires_at });

  const published = await publishedBy(account);
  const same = { user_id, session_id: null, actor: "gateway", trace_id, account_status: "ACTIVE" };
  const roles = ["USER"];
  const both = ["USER", "SUPPORT"];
  const expected = [
    { event_type: "UserRegistered", version: 1, session_epoch: 1, ...same, roles },
    { event_type: "UserUpdated", version: 2, session_epoch: 1, ...same, roles },
    {
      ...{ event_type: "UserSuspended", version: 3, session_epoch: 1, ...same, roles },
      account_status: "SUSPENDED",
    },
    { event_type: "UserResumed", version: 4, session_epoch: 1, ...same, roles },
    { event_type: "RolesChanged", version: 5, session_epoch: 1, ...same, roles: both },
    { event_type: "SessionsEnded", version: 5, session_epoch: 2, ...same, roles: both },
    { event_type: "SessionEnded", version: 5, session_epoch: 2, ...same, roles: both, session_id },
  ];
  assert.deepEqual(
    published.map(({ event: { event_id: _, occurred_at: __, ...event } }) => event),
    expected,
  );
  const audit = await account.rows<Record<string, unknown>>(
    "select audit_id, trace_id, version::int from audit_logs order by occurred_at",
  );
  assert.deepEqual(
    audit,
    published.map(({ event: { event_id, trace_id, version } }) => ({
      ...{ audit_id: event_id, trace_id, version },
    })),
  );
  for (const { id, key, headers, event } of published) {
    assert.deepEqual([id, key, headers["event_type"], headers["occurred_at"]], [
      ...[event.event_id, user_id, event.event_type, event.occurred_at],
    ]);
  }
  const text = JSON.stringify(published);
  for (const personal of ["ann@example.com", "Ann"]) assert.ok(!text.includes(personal));
});

Deno.test("the events of a user keep their order, however many changes and replicas there are", async () => {
  await using account = await startAccount();
  await using replica = await startReplica(account);
  const users = await Promise.all(
    Array.from({ length: 5 }, (_, i) => resolve(account, { provider: "p", subject: `s-${i}` })),
  );
  await Promise.all(Array.from({ length: 300 }, (_, i) => {
    const { url } = i % 2 ? account : replica;
    const path = `${url}/v1/users/${users[i % users.length]?.user_id}`;
    if (i % 7 === 0) return send("POST", `${path}/sessions:end`);
    if (i % 11 === 0) return send("POST", `${path}:suspend`, { reason: "spam" });
    if (i % 13 === 0) return send("POST", `${path}:resume`, { reason: "a mistake" });
    return send("PATCH", path, { display_name: `Name ${i}` });
  }));
  const published = await publishedBy(account);
  const rows = await outboxRows(account.database.ownerUrl);
  assert.equal(published.length, rows.length);
  for (const [user, ofUser] of Map.groupBy(published, ({ key }) => key)) {
    const written = rows.filter(({ aggregate_key }) => aggregate_key === user);
    assert.deepEqual(ofUser.map(({ id }) => id), written.map(({ event_id }) => event_id));
    for (const [i, { event }] of ofUser.entries()) {
      const before = ofUser[i - 1]?.event;
      if (!before) continue;
      const endsSessions = event.event_type === "SessionsEnded";
      assert.equal(event.version, before.version + (endsSessions ? 0 : 1));
      assert.equal(event.session_epoch, before.session_epoch + (endsSessions ? 1 : 0));
      assert.ok(event.occurred_at > before.occurred_at);
    }
  }
});
