// What an attacker who controls a service tries with its NATS user: to empty the stream, to forge events,
// to read the data of others. The streams are those that the operator makes.
import assert from "node:assert/strict";
import { ErrorCode, type NatsConnection, NatsError } from "nats";
import type { NatsServer } from "../../tools/servers/nats.ts";
import { names, provisionOn, startGuardedNats, withUser } from "./nats_users.ts";

const { stream, subject, durable } = names;
const advisories = `${stream}-${durable}-max-deliveries`;
const terminated = `${stream}-${durable}-msg-terminated`;
const api = "$JS.API";
const everySecond = 1_000_000_000;
const events = { name: stream, subjects: [subject], retention: "limits", storage: "file" };
const heard = "_INBOX.entitlement.heard"; // where notification may publish
const forging = (dest: string) => ({ src: heard, dest });

// The subject of a request to JetStream, and its body.
const attacks: Record<string, [string, Record<string, unknown>]> = {
  "empties the stream by max_msgs": [
    `STREAM.UPDATE.${stream}`,
    { ...events, discard: "old", num_replicas: 1, max_msgs: 1 },
  ],
  "empties the stream by max_age": [
    `STREAM.UPDATE.${stream}`,
    { ...events, discard: "old", num_replicas: 1, max_age: everySecond / 10 },
  ],
  "copies every event to another subject": [
    `STREAM.UPDATE.${stream}`,
    { ...events, num_replicas: 1, republish: { src: subject, dest: "stolen" } },
  ],
  "makes a stream that publishes events": [
    `STREAM.CREATE.${terminated}`,
    { name: terminated, subjects: [heard], republish: forging(subject) },
  ],
  "makes a stream that asks JetStream to delete the stream": [
    `STREAM.CREATE.${terminated}`,
    {
      name: terminated,
      subjects: [heard],
      republish: forging(`${api}.STREAM.DELETE.${stream}`),
    },
  ],
  "lets its own stream publish events": [
    `STREAM.UPDATE.${advisories}`,
    { name: advisories, subjects: [heard], republish: forging(subject) },
  ],
  "copies another stream into its own": [
    `STREAM.UPDATE.${advisories}`,
    { name: advisories, sources: [{ name: "other" }] },
  ],
  "makes a stream that copies another": [
    `STREAM.CREATE.${terminated}`,
    { name: terminated, sources: [{ name: "other" }] },
  ],
  "makes a mirror of another stream": [
    `STREAM.CREATE.${terminated}`,
    { name: terminated, mirror: { name: "other" } },
  ],
  "reads a message of another stream": ["STREAM.MSG.GET.other", { seq: 1 }],
  "reads another stream directly": ["DIRECT.GET.other", { seq: 1 }],
  "reads another stream by a consumer": [
    "CONSUMER.CREATE.other.mine",
    {
      stream_name: "other",
      config: { name: "mine", ack_policy: "none", deliver_subject: "_INBOX.notification.mine" },
    },
  ],
  "makes a consumer of its own": [
    `CONSUMER.CREATE.${stream}.mine`,
    { stream_name: stream, config: { durable_name: "mine", ack_policy: "explicit" } },
  ],
  "changes the consumer so that it gives up at once": [
    `CONSUMER.CREATE.${stream}.${durable}`,
    {
      stream_name: stream,
      action: "update",
      config: { durable_name: durable, ack_policy: "explicit", max_deliver: 1 },
    },
  ],
  "makes a consumer of its own advisories": [
    `CONSUMER.DURABLE.CREATE.${advisories}.mine`,
    { stream_name: advisories, config: { durable_name: "mine", ack_policy: "explicit" } },
  ],
  "purges the stream": [`STREAM.PURGE.${stream}`, {}],
  "deletes the stream": [`STREAM.DELETE.${stream}`, {}],
  "deletes a message": [`STREAM.MSG.DELETE.${stream}`, { seq: 1, no_erase: true }],
  "deletes the consumer": [`CONSUMER.DELETE.${stream}.${durable}`, {}],
  "brings back an old stream": [`STREAM.RESTORE.${stream}`, { config: events, state: {} }],
};

for (const user of ["entitlement", "notification"] as const) {
  for (const [what, [request, body]] of Object.entries(attacks)) {
    Deno.test(`NATS refuses that ${user} ${what}`, async () => {
      await using nats = await startGuardedNats();
      await prepare(nats);
      const before = await stateOf(nats);
      await withUser(user, nats, async (connection) => {
        assert.equal(await answerTo(connection, `${api}.${request}`, body), "refused");
      });
      assert.deepEqual(await stateOf(nats), before);
    });
  }
}

Deno.test("the notification user can't read answers to others", async () => {
  await using nats = await startGuardedNats();
  await prepare(nats);
  await withUser("notification", nats, async (connection) => {
    assert.equal(await answerTo(connection, "_INBOX.entitlement.guessed", {}), "refused");
    assert.equal(await answerTo(connection, "_INBOX.entitlement.checks.guessed", {}), "nobody");
  });
});

Deno.test("the tests notice an attack by the operator, who is allowed to do it", async () => {
  await using nats = await startGuardedNats();
  await prepare(nats);
  const before = await stateOf(nats);
  await withUser("operator", nats, async (connection) => {
    const [request, body] = attacks["empties the stream by max_msgs"] ?? ["", {}];
    const answer = await answerTo(connection, `${api}.${request}`, body);
    assert.match(answer, /"max_msgs":1/);
  });
  assert.notDeepEqual(await stateOf(nats), before);
});

// All actions except making a stream, and using a stream that belongs to nobody here.
async function prepare(nats: NatsServer): Promise<void> {
  await provisionOn(nats);
  await withUser("operator", nats, async (connection) => {
    const { streams } = await connection.jetstreamManager();
    await streams.delete(terminated);
    await streams.add({ name: "other", subjects: ["other.subject"] });
    for (const one of ["other.subject", subject, subject]) {
      await connection.jetstream().publish(one, "secret");
    }
  });
}

async function answerTo(
  connection: NatsConnection,
  subject: string,
  body: Record<string, unknown>,
): Promise<string> {
  try {
    return (await connection.request(subject, JSON.stringify(body), { timeout: 5_000 })).string();
  } catch (error) {
    if (!(error instanceof NatsError)) throw error;
    if (error.code === ErrorCode.PermissionsViolation) return "refused";
    if (error.code === ErrorCode.NoResponders) return "nobody";
    throw error;
  }
}

// Every stream with its settings, its contents and its consumers.
function stateOf(nats: NatsServer): Promise<unknown> {
  return withUser("operator", nats, async (connection) => {
    const { streams, consumers } = await connection.jetstreamManager();
    const found = await streams.list().next();
    return await Promise.all(found.map(async ({ config, state }) => ({
      config,
      messages: state.messages,
      consumers: (await consumers.list(config.name).next()).map(({ config }) => config),
    })));
  });
}
