import { createHmac, timingSafeEqual } from "node:crypto";

// A seal proves that an event was published by a service that has the key. This matters because
// NATS does not report who published a message, and `deno task recover` writes events of the stream
// to the database. The seal of one kind of event is not valid for another kind, because the body of
// one may be readable as the other.

export const sealHeader = "seal";

export type SealedKind = "event" | "points event"; // "event" is that of an entitlement

export interface SealedMessage {
  headers: Record<string, string>;
  body: Uint8Array;
}

export function sealed<Message extends SealedMessage>(
  message: Message,
  key: string | undefined,
  kind: SealedKind = "event",
): Message {
  if (key === undefined) return message;
  const headers = { ...message.headers, [sealHeader]: sealOf(message.body, key, kind) };
  return { ...message, headers };
}

function sealOf(body: Uint8Array, key: string, kind: SealedKind): string {
  return createHmac("sha256", key).update(`kenri ${kind}\n`).update(body).digest("hex");
}

// Whether the seal was made with any of these keys: the current one, or one that was used before.
export function isSealed(
  body: Uint8Array,
  seal: string,
  keys: string[],
  kind: SealedKind = "event",
): boolean {
  const given = new TextEncoder().encode(seal);
  return keys.some((key) => {
    const wanted = new TextEncoder().encode(sealOf(body, key, kind));
    return wanted.length === given.length && timingSafeEqual(wanted, given);
  });
}
