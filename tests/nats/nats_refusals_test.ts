// NATS refuses each user of deploy/nats-users.conf everything that its work does not need.
import assert from "node:assert/strict";
import { createInbox, ErrorCode, type NatsConnection, NatsError } from "nats";
import { names, startGuardedNats, type User, withUser } from "./nats_users.ts";

const { stream, subject, durable, accountStream, accountSubject } = names;
const { matchmakingStream, matchmakingSubject, matchmakingDurable } = names;

const advisories = `${stream}-${durable}-max-deliveries`;
// What no service but its owner may do with a stream, and what even the owner may not.
const touching = (name: string) => [
  ...["PURGE", "DELETE", "MSG.DELETE", "SNAPSHOT", "RESTORE", "CREATE", "UPDATE"].map((verb) =>
    `$JS.API.STREAM.${verb}.${name}`
  ),
  `$JS.API.CONSUMER.CREATE.${name}`,
  `$JS.API.CONSUMER.CREATE.${name}.mine`,
  `$JS.API.CONSUMER.DURABLE.CREATE.${name}.mine`,
  `$JS.API.DIRECT.GET.${name}`,
];
const elsewhere = [
  ...["other.subject", "$JS.API.STREAM.LIST", "$JS.API.STREAM.CREATE.other"],
  ...["_INBOX.notification.guessed", "$SYS.REQ.SERVER.PING"],
];
const others = [">", "*", "_INBOX.>", "_INBOX.notification.>", "$JS.>", "$SYS.>"];
const forbidden: Record<Exclude<User, "operator">, Record<"publish" | "subscribe", string[]>> = {
  entitlement: {
    publish: [
      "other.subject",
      `${subject}.other`,
      `$JS.API.STREAM.PURGE.${stream}`,
      `$JS.API.STREAM.DELETE.${stream}`,
      `$JS.API.STREAM.MSG.DELETE.${stream}`,
      `$JS.API.STREAM.MSG.GET.${stream}`,
      `$JS.API.STREAM.SNAPSHOT.${stream}`,
      `$JS.API.STREAM.RESTORE.${stream}`,
      `$JS.API.DIRECT.GET.${stream}`,
      "$JS.API.STREAM.LIST",
      "$JS.API.STREAM.CREATE.other",
      `$JS.API.STREAM.CREATE.${stream}`,
      `$JS.API.STREAM.UPDATE.${stream}`,
      `$JS.API.STREAM.UPDATE.${advisories}`,
      `$JS.API.CONSUMER.INFO.${stream}.${durable}`,
      `$JS.API.CONSUMER.MSG.NEXT.${stream}.${durable}`,
      `$JS.API.CONSUMER.DELETE.${stream}.${durable}`,
      `$JS.API.CONSUMER.CREATE.${stream}.mine`,
      `$JS.API.CONSUMER.DURABLE.CREATE.${stream}.mine`,
      `$JS.API.CONSUMER.CREATE.${stream}`,
      `$JS.ACK.${stream}.${durable}.1.1.1.1.0`,
      `$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.${stream}.${durable}`,
      "_INBOX.notification.guessed",
      "$SYS.REQ.SERVER.PING",
    ],
    subscribe: [
      ...[">", "*", "_INBOX.>", "_INBOX.notification.>", subject, `${subject}.check`],
      ...["$JS.>", "$JS.ACK.>", "$SYS.>", "$JS.EVENT.ADVISORY.>"],
    ],
  },
  notification: {
    publish: [
      subject,
      `${subject}.check`,
      "other.subject",
      `$JS.API.STREAM.PURGE.${stream}`,
      `$JS.API.STREAM.DELETE.${stream}`,
      `$JS.API.STREAM.MSG.DELETE.${stream}`,
      `$JS.API.STREAM.PURGE.${advisories}`,
      `$JS.API.STREAM.DELETE.${advisories}`,
      "$JS.API.STREAM.CREATE.other",
      `$JS.API.STREAM.CREATE.${stream}`,
      `$JS.API.STREAM.UPDATE.${stream}`,
      `$JS.API.STREAM.UPDATE.${advisories}`,
      "$JS.API.STREAM.LIST",
      `$JS.API.CONSUMER.CREATE.${stream}.${durable}`,
      `$JS.API.CONSUMER.CREATE.${advisories}.${advisories}`,
      `$JS.ACK.${advisories}.other.1.1.1.1.0`,
      "_INBOX.entitlement.guessed",
      matchmakingSubject,
      ...touching(matchmakingStream),
      `$JS.API.CONSUMER.CREATE.${matchmakingStream}.${matchmakingDurable}`,
      `$JS.ACK.${matchmakingStream}.other.1.1.1.1.0`,
      `$JS.API.CONSUMER.DELETE.${stream}.${durable}`,
      `$JS.API.CONSUMER.CREATE.${stream}.mine`,
      `$JS.API.CONSUMER.INFO.${stream}.other`,
      `$JS.ACK.${stream}.other.1.1.1.1.0`,
      `$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.${stream}.${durable}`,
      "$SYS.REQ.SERVER.PING",
    ],
    subscribe: [
      ...[">", "_INBOX.>", "_INBOX.entitlement.>", subject, "$JS.>", "$JS.API.>", "$SYS.>"],
    ],
  },
  account: {
    publish: [
      ...touching(accountStream),
      ...touching(stream),
      ...elsewhere,
      subject,
      "points.events",
      `${accountSubject}.other`,
      `$JS.API.STREAM.INFO.${stream}`,
      `$JS.API.STREAM.MSG.GET.${accountStream}`,
    ],
    subscribe: [...others, accountSubject, `${accountSubject}.watermark`, subject],
  },
  gateway: {
    publish: [
      ...touching(accountStream),
      ...touching(stream),
      ...elsewhere,
      subject,
      accountSubject,
      `${accountSubject}.watermark`,
      `$JS.API.STREAM.INFO.${stream}`,
      `$JS.API.STREAM.MSG.GET.${stream}`,
    ],
    subscribe: [...others, "account.>", subject, "points.events", "_INBOX.account.>"],
  },
  matchmaking: {
    publish: [
      ...touching(matchmakingStream),
      ...touching(stream),
      ...elsewhere,
      subject,
      accountSubject,
      `${matchmakingSubject}.other`,
      `$JS.API.STREAM.INFO.${stream}`,
      `$JS.API.STREAM.MSG.GET.${matchmakingStream}`,
      `$JS.API.CONSUMER.INFO.${matchmakingStream}.${matchmakingDurable}`,
      `$JS.API.CONSUMER.MSG.NEXT.${matchmakingStream}.${matchmakingDurable}`,
      `$JS.ACK.${matchmakingStream}.${matchmakingDurable}.1.1.1.1.0`,
    ],
    subscribe: [...others, "matchmaking.>", matchmakingSubject, subject, "_INBOX.account.>"],
  },
  provision: {
    publish: [
      subject,
      matchmakingSubject,
      `${subject}.check`,
      `$JS.API.STREAM.PURGE.${stream}`,
      `$JS.API.STREAM.DELETE.${stream}`,
      `$JS.API.STREAM.MSG.GET.${stream}`,
      "$JS.API.STREAM.CREATE.other",
      `$JS.API.CONSUMER.CREATE.${stream}.mine`,
      `$JS.API.CONSUMER.DELETE.${stream}.${durable}`,
      `$JS.API.CONSUMER.MSG.NEXT.${stream}.${durable}`,
      `$JS.ACK.${stream}.${durable}.1.1.1.1.0`,
      "_INBOX.entitlement.guessed",
    ],
    subscribe: [">", "_INBOX.>", "_INBOX.entitlement.>", subject, "$JS.>", "$SYS.>"],
  },
};

for (const [user, { publish, subscribe }] of Object.entries(forbidden)) {
  Deno.test(`the user ${user} is refused everything else`, async () => {
    await using nats = await startGuardedNats();
    const publishers: Record<string, string> = {
      entitlement: subject,
      account: accountSubject,
      matchmaking: matchmakingSubject,
    };
    const streams = {
      [stream]: subject,
      [accountStream]: accountSubject,
      [matchmakingStream]: matchmakingSubject,
    };
    await withUser("operator", nats, async (connection) => {
      const manager = await connection.jetstreamManager();
      for (const [name, subject] of Object.entries(streams)) {
        await manager.streams.add({ name, subjects: [subject] });
        await connection.jetstream().publish(subject, "kept");
      }
    });
    await withUser(user as User, nats, async (connection) => {
      for (const one of publish) assert.ok(await isRefused(asked(connection, one)), one);
      for (const one of subscribe) assert.ok(await isRefused(heard(connection, one)), one);
      // This shows that the request itself is valid.
      const read = user === "gateway" ? accountStream : stream;
      const own = publishers[user] ?? `$JS.API.STREAM.INFO.${read}`;
      assert.equal(await isRefused(asked(connection, own)), false);
      assert.equal(await isRefused(heard(connection, createInbox(`_INBOX.${user}`))), false);
    });
    await withUser("operator", nats, async (connection) => {
      const manager = await connection.jetstreamManager();
      for (const [name, subject] of Object.entries(streams)) {
        const { state } = await manager.streams.info(name);
        assert.equal(state.messages, publishers[user] === subject ? 2 : 1);
      }
    });
  });
}

const asked = (connection: NatsConnection, one: string) =>
  connection.request(one, "{}", { timeout: 5_000 });

async function heard(connection: NatsConnection, one: string): Promise<void> {
  const refused = Promise.withResolvers<void>();
  connection.subscribe(one, { callback: (error) => error && refused.reject(error) });
  await Promise.race([refused.promise, connection.flush().then(() => connection.flush())]);
}

async function isRefused(attempt: Promise<unknown>): Promise<boolean> {
  try {
    await attempt;
    return false;
  } catch (error) {
    if (!(error instanceof NatsError)) throw error;
    return error.code === ErrorCode.PermissionsViolation;
  }
}
