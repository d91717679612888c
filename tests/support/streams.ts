// Streams for tests, on the server that KENRI_TEST_NATS_URL names or, without it, on a new one.
import type { NatsConnection, StoredMsg, StreamConfig } from "nats";
import { startNats } from "../../tools/servers/nats.ts";
import { connectTo } from "../../tools/servers/nats_client.ts";
import { until } from "../../tools/servers/wait.ts";
import { uniqueName } from "./databases.ts";

export const natsUrl = Deno.env.get("KENRI_TEST_NATS_URL") ?? await startOwnServer();

async function startOwnServer(): Promise<string> {
  const server = await startNats();
  Deno.test.afterAll(() => server.close());
  return server.url;
}

export interface StreamNames {
  stream: string;
  subject: string;
}

// Names that no other test uses. The stream itself is not made.
export function freshStreamNames(): StreamNames {
  const stream = uniqueName("events");
  return { stream, subject: `${stream}.events` };
}

export async function makeStream(
  url: string,
  { stream, subject }: StreamNames,
  config: Partial<StreamConfig> = {},
): Promise<void> {
  await withNats(url, async (connection) => {
    const { streams } = await connection.jetstreamManager();
    await streams.add({ name: stream, subjects: [subject], ...config });
  });
}

export async function withNats<Result>(
  url: string,
  work: (connection: NatsConnection) => Promise<Result>,
): Promise<Result> {
  const connection = await connectTo(url, { reconnect: false });
  try {
    return await work(connection);
  } finally {
    await connection.close();
  }
}

/** All messages of the stream, in its order. */
export function readStream(url: string, stream: string): Promise<StoredMsg[]> {
  return withNats(url, async (connection) => {
    const { streams } = await connection.jetstreamManager();
    const { first_seq, last_seq, messages } = (await streams.info(stream)).state;
    const count = messages === 0 ? 0 : last_seq - first_seq + 1;
    const sequences = Array.from({ length: count }, (_, i) => first_seq + i);
    const stored: StoredMsg[] = [];
    while (sequences.length > 0) {
      const some = sequences.splice(0, 500).map((seq) => streams.getMessage(stream, { seq }));
      stored.push(...await Promise.all(some));
    }
    return stored;
  });
}

export function deleteStream(url: string, stream: string): Promise<void> {
  return withNats(url, async (connection) => {
    const manager = await connection.jetstreamManager();
    await manager.streams.delete(stream).catch(() => {});
  });
}

/** The stream refuses all messages until a service starts and restores its settings. */
export function refuseMessagesIn(url: string, stream: string): Promise<void> {
  return withNats(url, async (connection) => {
    const { streams } = await connection.jetstreamManager();
    const exists = () => streams.info(stream).then(() => true, () => false);
    await until("the service has made the stream", exists);
    await streams.update(stream, { max_msg_size: 10 });
  });
}
