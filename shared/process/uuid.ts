import { randomHex } from "./random.ts";

// A UUID of any version, as callers write it.
export const uuidPattern = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

// A UUID of version 7: it begins with the time, so that new rows lie together in the index.
export function uuidv7(now = Date.now()): string {
  const time = now.toString(16).padStart(12, "0");
  const random = randomHex(10);
  const variant = "89ab"[parseInt(random.slice(0, 1), 16) % 4];
  return `${time.slice(0, 8)}-${time.slice(8)}-7${random.slice(1, 4)}-${variant}${
    random.slice(4, 7)
  }-${random.slice(7, 19)}`;
}
