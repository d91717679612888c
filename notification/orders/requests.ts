import type { SendRequest } from "@kenri/proto/send.ts";
import { decryptSecret } from "../endpoints/secrets.ts";
import { signedHeaders } from "../endpoints/signature.ts";
import type { OrderRow } from "./orders.ts";

// The adapters: what is sent for an order. The id, the key and the body are the same each time.

const common = { "Content-Type": "application/json", "User-Agent": "Kenri" };

// It is read here and not by PostgreSQL, whose operators on JSON fail for some texts that JSON allows.
export function readOrderRequest(json: string): { url?: string; body?: string } {
  const { url, payload }: Record<string, unknown> = Object(JSON.parse(json));
  return {
    ...(typeof url === "string" ? { url } : {}),
    ...(payload === undefined ? {} : { body: JSON.stringify(payload) }),
  };
}

// Only an operator can change this.
export class SecretUnknown extends Error {
  override readonly name = "SecretUnknown";
}

// Undefined if the order can't be read. Throws SecretUnknown.
export function requestOf(
  row: OrderRow,
  timeoutMs: number,
  secretKeys: Uint8Array[] | undefined,
): SendRequest | undefined {
  const { endpoint_id, event_id, endpoint } = row.content;
  const { url, body } = readOrderRequest(row.content.request);
  if (body === undefined) return undefined;
  const request = { method: "POST" as const, body, timeout_ms: timeoutMs };
  if (endpoint_id === null) {
    if (url === undefined || !URL.canParse(url)) return undefined;
    return { ...request, url, headers: { ...common, "Idempotency-Key": row.id } };
  }
  if (!endpoint) return undefined;
  const secrets = secretsOf(endpoint_id, endpoint.secrets, secretKeys);
  // By the clock of the database: receivers refuse what a process with a wrong clock would sign.
  const seconds = Math.floor(
    (row.content.claimed_at_ms + performance.now() - row.claimedAt) / 1_000,
  );
  const signed = signedHeaders(secrets, event_id ?? row.id, seconds, body);
  return { ...request, url: endpoint.url, headers: { ...common, ...signed } };
}

function secretsOf(endpointId: string, encrypted: string[], keys: Uint8Array[] = []): string[] {
  try {
    return encrypted.map((hex) => decryptSecret(keys, endpointId, Uint8Array.fromHex(hex)));
  } catch {
    throw new SecretUnknown("No notification.endpoints.secret-key decrypts its secret");
  }
}
