// Streams for tests, on the server that KENRI_TEST_NATS_URL names, else on one of their own.
import type { NatsConnection, StoredMsg, StreamConfig } from "nats";
import { startNats } from "../../tools/servers/nats.ts";
import { connectTo } from "../../tools/servers/nats_client.ts";
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

// Names that no other test uses; whoever wants the stream makes it.
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

// All that the stream holds, in its order.
export function readStream(url: string, stream: string): Promise<StoredMsg[]> {
  return withNats(url, async (connection) => {
    const manager = await connection.jetstreamManager();
    const { state } = await manager.streams.info(stream);
    const messages: StoredMsg[] = [];
    if (state.messages === 0) return messages;
    for (let seq = state.first_seq; seq <= state.last_seq; seq++) {
      messages.push(await manager.streams.getMessage(stream, { seq }));
    }
    return messages;
  });
}

export function deleteStream(url: string, stream: string): Promise<void> {
  return withNats(url, async (connection) => {
    const manager = await connection.jetstreamManager();
    await manager.streams.delete(stream).catch(() => {});
  });
}
