import type { Message } from "../nats/pull.ts";

type Decode<Event> = (message: Message) => Event;

// For a stream that has several kinds of events, each under its own subject. A message under a
// subject without a decoder may be readable for a newer replica, so it is redelivered.
export function bySubject<Event>(
  ...decoders: (readonly [subject: string, decode: Decode<Event>])[]
): Decode<Event> {
  const decoderOf = new Map(decoders);
  return (message) => {
    const decode = decoderOf.get(message.subject);
    if (decode) return decode(message);
    throw new Error(
      `This version has no decoder for the subject ${JSON.stringify(message.subject)}`,
    );
  };
}
