// The users of deploy/nats-users.conf may do what the services need, and a refusal is logged and
// counted. nats_refusals_test.ts has what each of them must not do.
import assert from "node:assert/strict";
import { usersFile } from "../../tools/provision/users.ts";
import { post, startAccount } from "../support/account.ts";
import { call, grant } from "../support/api.ts";
import { logIn, me, startGateway } from "../support/gateway.ts";
import { joined, startMatchmaking } from "../support/matchmaking.ts";
import { freshBoth } from "../support/places.ts";
import { ask } from "../support/entitlement.ts";
import {
  names,
  nameSettings,
  provisionConfig,
  provisionOn,
  startGuardedNats,
  startWithUser,
  urlFor,
  withUser,
} from "./nats_users.ts";
import { runCommand } from "../operators/runbook.ts";
import { type ServiceProcess, startService } from "../../tools/servers/service_process.ts";
import { operate } from "../support/stack.ts";
import { until } from "../../tools/servers/wait.ts";
import { countRows } from "../../tools/servers/asking.ts";

const { stream, subject, durable } = names;

const quick = { ENTITLEMENT_DEBUG_ENABLED: "true", ENTITLEMENT_OUTBOX_POLL_INTERVAL: "100ms" };
const start: typeof startWithUser = (service, place, nats) =>
  startWithUser(service, place, nats, quick);

const refusalsOf = async ({ url }: ServiceProcess) =>
  [...(await call(`${url}/metrics`)).text.matchAll(/^kenri_nats_refused_total.* (\d+)$/gm)]
    .reduce((sum, [, count]) => sum + Number(count), 0);

const says = ({ log }: ServiceProcess, what: RegExp) =>
  log.filter(({ message }) => what.test(message)).length;

Deno.test("everything works with these users: events, checks, advisories, a lost stream", async () => {
  await using nats = await startGuardedNats();
  await provisionOn(nats);
  await using place = await freshBoth(nats.url);
  await using entitlement = await start("entitlement", place, nats);
  await using other = await start("entitlement", place, nats);
  await using notification = await start("notification", place, nats);
  await using replica = await start("notification", place, nats);
  const sent = () => countRows(place.owners.notification, "notifications where status = 'SENT'");
  await grant(entitlement.url, { user_id: "ann" }, "a");
  await grant(other.url, { user_id: "bob" }, "b");
  await until("both are sent", async () => await sent() === 2);

  const all = { since: "2026-01-01T00:00:00Z", grace_seconds: 0 };
  const report = await operate(entitlement.url, "/operations/entitlement/reconcile", all);
  assert.deepEqual(report.states, { RECEIVED: 2 });
  await withUser(
    "operator",
    nats,
    (connection) => connection.jetstream().publish(subject, "no event"),
  );
  await until("the advisory is stored with its message", async () =>
    await countRows(
      place.owners.notification,
      "notification_nats_dlq where message_body is not null",
    ) === 1);

  const services = [entitlement, other, notification, replica];
  for (const service of services) assert.equal(await refusalsOf(service), 0);
  await nats.stop();
  await nats.wipe();
  await nats.start();
  const missing = /Stream ".*" is missing, and NATS does not permit .*: run `deno task provision`$/;
  for (const service of services) {
    await until("it says what to do", () => says(service, missing) > 0);
    const ready = await call(`${service.url}/readyz`);
    assert.equal(ready.status, 503);
    assert.match(ready.json.message, /NATS lacks a stream or consumer/);
  }
  assert.equal((await grant(entitlement.url, { user_id: "cid" }, "c")).status, 200);
  const settings = { ...nameSettings, NATS_PROVISION_URL: urlFor("provision", nats) };
  await runCommand("A stream is missing or differs", 0, settings);
  await until("the third is sent, too", async () => await sent() === 3);
  await until(
    "what was lost is in the stream again",
    () =>
      withUser("operator", nats, async (connection) => {
        const manager = await connection.jetstreamManager();
        return (await manager.streams.info(stream)).state.messages === 3;
      }),
  );
  for (const service of services) {
    await until("it is ready", async () => (await call(`${service.url}/readyz`)).status === 200);
    const loops = service === entitlement || service === other ? 1 : 9;
    assert.ok(says(service, missing) <= loops, "each loop says it once");
    assert.ok(await refusalsOf(service) <= loops, "and asks for it once");
    assert.equal(await service.stop(), 0);
  }
});

Deno.test("account and the gateway work with these users: events, watermarks, a restart of NATS", async () => {
  const ofAccounts = { stream: names.accountStream, subject: names.accountSubject };
  await using nats = await startGuardedNats();
  await provisionOn(nats);
  await using account = await startAccount({ NATS_URL: urlFor("account", nats) }, ofAccounts);
  const more = { NATS_URL: urlFor("gateway", nats), GATEWAY_SESSION_STALENESS: "3s" };
  await using gateway = await startGateway(account, more);
  const ann = await logIn(account);
  const status = async () => (await me(gateway, ann)).status;
  const change = (verb: string) =>
    post(`${account.url}/v1/users/${ann.userId}:${verb}`, { reason: "test" });
  await until("the gateway knows the session", async () => await status() === 200);
  for (const restarts of [false, true]) {
    if (restarts) {
      await nats.stop();
      await nats.start();
    }
    assert.equal((await change("suspend")).status, 204);
    await until("the session is refused", async () => await status() === 403);
    assert.equal((await change("resume")).status, 204);
    await until("the session works again", async () => await status() === 200);
  }
  for (const service of [account.service, gateway]) {
    await until("it is ready", async () => (await call(`${service.url}/readyz`)).status === 200);
    assert.equal(await refusalsOf(service), 0);
  }
  assert.equal(await gateway.stop(), 0);
});

Deno.test("matchmaking works with its user, and notification hears of it, also after a restart of NATS", async () => {
  await using nats = await startGuardedNats();
  await provisionOn(nats);
  await using place = await freshBoth(nats.url);
  await using notification = await start("notification", place, nats);
  const ofMatches = { stream: names.matchmakingStream, subject: names.matchmakingSubject };
  const settings = { NATS_URL: urlFor("matchmaking", nats), MATCHMAKING_TICKET_TTL: "8s" };
  await using matchmaking = await startMatchmaking(settings, ofMatches);
  const sent = (type: string) =>
    countRows(
      place.owners.notification,
      `notifications where status = 'SENT' and type = '${type}'`,
    );
  await joined(matchmaking, "lonely", { mode: "rank" });
  for (const matches of [1, 2]) {
    for (const user of ["ann", "bob"]) await joined(matchmaking, user);
    await until("both are notified", async () => await sent("MatchFound") === 2 * matches);
    if (matches === 2) continue;
    await nats.stop();
    await nats.start();
  }
  await until("the expired one is notified", async () => await sent("TicketExpired") === 1);
  for (const service of [matchmaking.service, notification]) {
    await until("it is ready", async () => (await call(`${service.url}/readyz`)).status === 200);
    assert.equal(await refusalsOf(service), 0);
  }
});

Deno.test("an advisory about another stream is kept without a copy, and delays nothing", async () => {
  await using nats = await startGuardedNats();
  await provisionOn(nats);
  await using place = await freshBoth(nats.url);
  await using notification = await start("notification", place, nats);
  await withUser("operator", nats, async (connection) => {
    const { streams } = await connection.jetstreamManager();
    await streams.add({ name: "other", subjects: ["other.subject"] });
    await connection.jetstream().publish("other.subject", "secret");
    await connection.jetstream().publish(subject, "no event");
    const advisory = { id: "forged", timestamp: new Date().toISOString(), consumer: durable };
    connection.publish(
      `$JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED.${stream}.${durable}`,
      JSON.stringify({ ...advisory, stream: "other", stream_seq: 1 }),
    );
    await connection.flush();
  });
  const kept = () =>
    ask(
      place.owners.notification,
      `select stream, message_body is not null as has_copy from notification_nats_dlq
       order by stream`,
    );
  await until("both are kept", async () => (await kept()).length === 2);
  assert.deepEqual(await kept(), [
    { stream, has_copy: true },
    { stream: "other", has_copy: false },
  ]);
  assert.equal(await refusalsOf(notification), 0);
});

Deno.test("nobody can connect without a user or with the wrong password", async () => {
  await using nats = await startGuardedNats();
  await using place = await freshBoth(nats.url);
  const stolen = urlFor("entitlement", nats).replace("entitlement:", "notification:");
  for (const url of [nats.url, stolen]) {
    const settings = { ...place.settings, ...nameSettings, NATS_URL: url };
    await using unknown = await startService("notification", settings);
    await until(
      "the refusal is logged",
      () => /can't be reached.*Authorization/.test(JSON.stringify(unknown.log)),
    );
    const ready = await call(`${unknown.url}/readyz`);
    assert.equal(ready.status, 503);
    assert.match(ready.json.message, /NATS can't be reached/);
    assert.equal(await unknown.stop(), 0);
  }
});

const lacking: ["entitlement" | "notification", string, string, RegExp][] = [
  ["entitlement", "publish", subject, /Events wait because NATS does not permit to publish to/],
  ["entitlement", "publish", `$JS.API.STREAM.INFO.${stream}`, /The relay can't start yet/],
  [
    "notification",
    "publish",
    `$JS.API.CONSUMER.MSG.NEXT.${stream}.${durable}`,
    /Events can't be consumed/,
  ],
  ["notification", "subscription", `${subject}.check`, /Reconciliation requests can't be received/],
];
for (const [service, operation, what, then] of lacking) {
  Deno.test(`${service} logs and counts that NATS does not permit ${operation} of ${what}`, async () => {
    await using nats = await startGuardedNats((users) => users.replaceAll(`"${what}"\n`, ""));
    await provisionOn(nats, "operator");
    await using place = await freshBoth(nats.url);
    await using process = await start(service, place, nats);
    if (service === "entitlement") await grant(process.url);
    const said = (line: string | RegExp) =>
      process.log.some(({ message }) =>
        typeof line === "string" ? message === line : line.test(message)
      );
    await until("it is named", () => said(`NATS does not permit ${operation} of ${what}`));
    await until("the work says that it waits", () => said(then));
    assert.ok(await refusalsOf(process) > 0);
    if (service !== "entitlement") return;
    const rows = await ask(
      place.owners.entitlement,
      "select distinct attempt_count, status = 'FAILED' as failed from outbox_events",
    );
    assert.deepEqual(rows, [{ attempt_count: 0, failed: false }]);
  });
}

Deno.test("deploy/nats-users.conf is what the command prints for the default names", async () => {
  const config = provisionConfig({ ...nameSettings, NATS_URL: "nats://x" });
  const file = await Deno.readTextFile(new URL("../../deploy/nats-users.conf", import.meta.url));
  assert.equal(file, usersFile(config));
});
