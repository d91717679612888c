// Small events with two codecs, for tests of the inbox that need no service.
import { UnreadableMessage } from "../../proto/unreadable.ts";
import type { Message } from "../../shared/nats/pull.ts";
import { publish } from "../support/events.ts";

export interface SmallEvent {
  event_id: string;
  payload: { text: string };
}

export interface Codec {
  encode(event: SmallEvent): Uint8Array;
  decode(message: Message): SmallEvent;
}

export const json: Codec = {
  encode: (event) => new TextEncoder().encode(JSON.stringify(event)),
  decode: ({ data }) => {
    try {
      return JSON.parse(new TextDecoder().decode(data));
    } catch {
      throw new UnreadableMessage("not JSON");
    }
  },
};

export const words: Codec = {
  encode: ({ event_id, payload }) => new TextEncoder().encode(`${event_id} ${payload.text}`),
  decode: ({ data }) => {
    const [event_id = "", text] = new TextDecoder().decode(data).split(" ");
    if (text === undefined) throw new UnreadableMessage("not two words");
    return { event_id, payload: { text } };
  },
};

export function smallEvents(count: number): SmallEvent[] {
  return Array.from({ length: count }, (_, i) => ({
    event_id: crypto.randomUUID(),
    payload: { text: `event-${i}` },
  }));
}

/** Without a Nats-Msg-Id, so that the stream stores the same event twice. */
export function publishSmall(
  { url, subject, codec }: { url: string; subject: string; codec: Codec },
  events: SmallEvent[],
): Promise<number[]> {
  return publish(url, subject, events.map((event) => ({ body: codec.encode(event) })));
}

export function counting<Name extends string>(
  ...names: Name[]
): { counted: Record<Name, number>; counts: Record<Name, { inc(): void }> } {
  const counted = Object.fromEntries(names.map((name) => [name, 0])) as Record<Name, number>;
  const counter = (name: Name) => ({ inc: () => void counted[name]++ });
  const counts = Object.fromEntries(names.map((name) => [name, counter(name)]));
  return { counted, counts: counts as Record<Name, { inc(): void }> };
}
