// The messages that the relay makes of the same rows, published by the usual client or by the relay's.
import { headers } from "nats";
import { encodeEvent } from "../../../proto/entitlement/encode.ts";
import { type EventType, toMessage } from "../../../shared/outbox/event_types.ts";
import { openPublisher } from "../../../shared/outbox/publisher.ts";
import { connectTo } from "../../servers/nats_client.ts";
import type { Publish } from "./library.ts";

export interface Publishing {
  publish: Publish;
  close(): Promise<void>;
}

export async function openPublishing(
  natsUrl: string,
  subject: string,
  isLean: boolean,
): Promise<Publishing> {
  const connection = await connectTo(natsUrl);
  const type: EventType = {
    subject,
    encode: (id, payload) => ({ body: encodeEvent(id, payload) }),
  };
  const jetstream = connection.jetstream();
  const lean = openPublisher(connection, "peers");

  async function publishByClient(event: Parameters<Publish>[0]): Promise<void> {
    const message = toMessage(event, type);
    const sent = headers();
    for (const [name, value] of Object.entries(message.headers ?? {})) sent.set(name, value);
    await jetstream.publish(subject, message.body, { msgID: message.id, headers: sent });
  }

  async function publishLean(event: Parameters<Publish>[0]): Promise<void> {
    const result = await lean.publish(toMessage(event, type));
    if (result.kind !== "acked") throw new Error(result.error);
  }

  return {
    publish: isLean ? publishLean : publishByClient,
    close: () => {
      lean.close();
      return connection.close();
    },
  };
}
