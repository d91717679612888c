// Restores an earlier state of a stream without any reconnect.
import { createInbox, type NatsConnection } from "nats";

export interface Snapshot {
  restore(): Promise<void>;
}

export async function snapshotOf(connection: NatsConnection, stream: string): Promise<Snapshot> {
  const ask = async (subject: string, body: unknown) => {
    const answer = (await connection.request(`$JS.API.STREAM.${subject}.${stream}`, toJson(body)))
      .json<{ error?: { description: string }; deliver_subject: string }>();
    if (answer.error) throw new Error(answer.error.description);
    return answer;
  };
  const chunks: Uint8Array[] = [];
  const deliver_subject = createInbox();
  const subscription = connection.subscribe(deliver_subject);
  const made = await ask("SNAPSHOT", { deliver_subject });
  for await (const message of subscription) {
    if (message.data.length === 0) break; // the end of the snapshot
    chunks.push(message.data);
    message.respond(); // the server waits for it
  }
  return {
    async restore() {
      await ask("DELETE", {});
      const { deliver_subject } = await ask("RESTORE", made);
      for (const chunk of chunks) await connection.request(deliver_subject, chunk);
      const restored = (await connection.request(deliver_subject)).json<{ error?: unknown }>();
      if (restored.error) throw new Error(JSON.stringify(restored.error));
    },
  };
}

function toJson(body: unknown): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(body));
}
