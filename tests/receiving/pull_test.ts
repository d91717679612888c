// A pull ends when the server announces it: no delivered message is dropped on the way, and a pull
// that can't work rejects.
import assert from "node:assert/strict";
import { AckPolicy, type NatsConnection } from "nats";
import { pull, type Pulled } from "../../shared/nats/pull.ts";
import { connectTo } from "../../tools/servers/nats_client.ts";
import { forgetful, startLink } from "./links.ts";
import { consumerInfo } from "../support/notification.ts";
import {
  freshStreamNames,
  makeStream,
  natsUrl,
  type StreamNames,
  withNats,
} from "../support/streams.ts";

const everything = { messages: 1_000, bytes: 1_000_000 };
const name = "pulls";

const links = {
  "over a slow link": { delayMs: 120 },
  "over a slow link, from a server that never announces the end of a pull": {
    delayMs: 120,
    rewrite: forgetful,
  },
};

for (const [where, options] of Object.entries(links)) {
  Deno.test(`no message is lost between two pulls ${where}`, async () => {
    await using link = startLink(natsUrl, options);
    const names = await freshDurable();
    const published = 400;
    const publishing = publishSlowly(names, published, 8);
    await using consumer = await connected(link.url);
    const seen: number[] = [];
    while (seen.length < published) {
      await pull({ ...consumer, ...names, name }, everything, (message) => {
        seen.push(message.sequence);
        message.ack();
      });
    }
    await publishing;
    await consumer.connection.flush();
    assert.deepEqual(seen, Array.from({ length: published }, (_, i) => i + 1));
    const { delivered, num_ack_pending } = await consumerInfo({ ...names, natsUrl }, name);
    assert.deepEqual([delivered.consumer_seq, num_ack_pending], [published, 0]);
  });
}

Deno.test("a pull takes no more than its limits and ends as soon as they are reached", async () => {
  const names = await freshDurable();
  await publish(names, Array.from({ length: 10 }, () => new Uint8Array(1_000)));
  await using consumer = await connected(natsUrl);
  const pulled = async (messages: number, bytes: number) => {
    const taken: Pulled[] = [];
    await pull({ ...consumer, ...names, name }, { messages, bytes }, (message) => {
      taken.push(message);
      message.ack();
    });
    return taken.length;
  };
  const begun = performance.now();
  assert.equal(await pulled(3, 1_000_000), 3);
  assert.equal(await pulled(100, 2_600), 2);
  assert.ok(performance.now() - begun < 900, "it waited for the end of the time");
  assert.equal(await pulled(100, 1_000_000), 5);
  assert.equal(await pulled(100, 1_000_000), 0);
});

Deno.test("each kind of answer has its effect, and only the first answer counts", async () => {
  const names = await freshDurable();
  await publish(names, [new Uint8Array(1), new Uint8Array(2), new Uint8Array(3)]);
  await using consumer = await connected(natsUrl);
  const durable = { ...consumer, ...names, name };
  const first: Pulled[] = [];
  await pull(durable, everything, (message) => first.push(message));
  assert.deepEqual(first.map(({ sequence, deliveries }) => [sequence, deliveries]), [
    [1, 1],
    [2, 1],
    [3, 1],
  ]);
  const [acked, terminated, again] = first as [Pulled, Pulled, Pulled];
  acked.ack();
  acked.retryIn(1);
  terminated.terminate("for a test");
  terminated.retryIn(1);
  again.stillWorking();
  again.retryIn(1);
  again.stillWorking();
  const second: Pulled[] = [];
  await pull(durable, { messages: 1, bytes: 1_000_000 }, (message) => second.push(message));
  assert.deepEqual(
    second.map(({ sequence, deliveries, data }) => [sequence, deliveries, data.length]),
    [
      [3, 2, 3],
    ],
  );
  second[0]?.ack();
  await consumer.connection.flush();
  assert.equal((await consumerInfo({ ...names, natsUrl }, name)).num_ack_pending, 0);
});

Deno.test("a pull fails at once if its consumer does not exist or is deleted meanwhile", async () => {
  const names = await freshDurable();
  await using consumer = await connected(natsUrl);
  const durable = { ...consumer, ...names, name };
  const problem = /can't be pulled from/;
  await assert.rejects(pull({ ...durable, name: "nobody" }, everything, () => {}), problem);
  const waiting = assert.rejects(pull(durable, everything, () => {}), problem);
  await consumerInfo({ ...names, natsUrl }, name);
  await withNats(natsUrl, async (connection) => {
    const { streams } = await connection.jetstreamManager();
    await streams.delete(names.stream);
  });
  await waiting;
});

Deno.test("a pull ends with its connection", async () => {
  const names = await freshDurable();
  const consumer = await connected(natsUrl);
  const pulling = pull({ ...consumer, ...names, name }, everything, () => {});
  await consumer.connection.close();
  await pulling;
});

async function freshDurable(): Promise<StreamNames> {
  const names = freshStreamNames();
  await makeStream(natsUrl, names);
  await withNats(natsUrl, async (connection) => {
    const { consumers } = await connection.jetstreamManager();
    await consumers.add(names.stream, { durable_name: name, ack_policy: AckPolicy.Explicit });
  });
  return names;
}

function publish({ subject }: StreamNames, bodies: Uint8Array[]): Promise<void> {
  return withNats(natsUrl, async (connection) => {
    for (const body of bodies) await connection.jetstream().publish(subject, body);
  });
}

function publishSlowly({ subject }: StreamNames, count: number, everyMs: number): Promise<void> {
  return withNats(natsUrl, async (connection) => {
    for (let i = 0; i < count; i++) {
      await connection.jetstream().publish(subject);
      await new Promise((over) => setTimeout(over, everyMs));
    }
  });
}

async function connected(url: string) {
  const connection: NatsConnection = await connectTo(url, { reconnect: false });
  return { connection, service: "notification", [Symbol.asyncDispose]: () => connection.close() };
}
