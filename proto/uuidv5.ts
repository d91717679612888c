import { createHash } from "node:crypto";

// A UUID of version 5: the same namespace and name always have the same one.
export function uuidv5(namespace: string, name: string): string {
  const bytes = createHash("sha1")
    .update(Uint8Array.fromHex(namespace.replaceAll("-", "")))
    .update(name)
    .digest()
    .subarray(0, 16);
  bytes[6] = 0x50 | ((bytes[6] as number) & 0x0f);
  bytes[8] = 0x80 | ((bytes[8] as number) & 0x3f);
  return bytes.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}
