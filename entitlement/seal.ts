import { createHmac, timingSafeEqual } from "node:crypto";
import type { EventMessage } from "./event.ts";

// A seal shows who has the key that an event was published by this service. NATS doesn't say who
// published a message, and `deno task recover` writes into the database what it finds in the stream.

export const sealHeader = "seal";

export function sealed(message: EventMessage, key: string | undefined): EventMessage {
  if (key === undefined) return message;
  const { id, headers, body } = message;
  return { id, headers: { ...headers, [sealHeader]: sealOf(body, key) }, body };
}

function sealOf(body: Uint8Array, key: string): string {
  return createHmac("sha256", key).update("kenri event\n").update(body).digest("hex");
}

// By any of the keys: the one that seals now, or those before it.
export function isSealed(body: Uint8Array, seal: string, keys: string[]): boolean {
  const given = new TextEncoder().encode(seal);
  return keys.some((key) => {
    const wanted = new TextEncoder().encode(sealOf(body, key));
    return wanted.length === given.length && timingSafeEqual(wanted, given);
  });
}
