import type { SendRequest } from "@kenri/proto/send.ts";
import { decryptSecret } from "../endpoints/secrets.ts";
import { signedHeaders } from "../endpoints/signature.ts";
import type { OrderRow } from "./orders.ts";

// The adapters: what is sent for an order. The id, the key and the body are the same each time.

const common = { "Content-Type": "application/json", "User-Agent": "Kenri" };

// Undefined if the order can't be read.
export function requestOf(
  row: OrderRow,
  timeoutMs: number,
  secretKeys: Uint8Array[] | undefined,
): SendRequest | undefined {
  const { url, body, endpoint_id, event_id, endpoint } = row.content;
  if (body === null) return undefined;
  const request = { method: "POST" as const, body, timeout_ms: timeoutMs };
  if (endpoint_id === null) {
    if (url === null || !URL.canParse(url)) return undefined;
    return { ...request, url, headers: { ...common, "Idempotency-Key": row.id } };
  }
  if (!endpoint || !secretKeys) return undefined;
  const secrets = endpoint.secrets.map((hex) =>
    decryptSecret(secretKeys, endpoint_id, Uint8Array.fromHex(hex))
  );
  // By the clock of the database: receivers refuse what a process with a wrong clock would sign.
  const seconds = Math.floor(
    (row.content.claimed_at_ms + performance.now() - row.claimedAt) / 1_000,
  );
  const signed = signedHeaders(secrets, event_id ?? row.id, seconds, body);
  return { ...request, url: endpoint.url, headers: { ...common, ...signed } };
}
