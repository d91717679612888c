import { connectTo } from "../../servers/nats_client.ts";

const readsAtOnce = 500;

/** All messages of a stream, in its order. */
export async function readMessages<Message>(
  natsUrl: string,
  stream: string,
  read: (data: Uint8Array, sequence: number) => Message,
): Promise<Message[]> {
  const connection = await connectTo(natsUrl, { reconnect: false, timeout: 5_000 });
  try {
    const { streams } = await connection.jetstreamManager();
    const { first_seq, last_seq, messages } = (await streams.info(stream)).state;
    const found: Message[] = [];
    for (let from = first_seq; messages > 0 && from <= last_seq; from += readsAtOnce) {
      const count = Math.min(readsAtOnce, last_seq - from + 1);
      const stored = await Promise.all(
        Array.from({ length: count }, (_, i) => streams.getMessage(stream, { seq: from + i })),
      );
      found.push(...stored.map(({ data, seq }) => read(data, seq)));
    }
    return found;
  } finally {
    await connection.close();
  }
}
