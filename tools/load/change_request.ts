// A change as a client asks for it, and the HTTP request that carries it.
export interface ChangeRequest {
  key: string;
  action: "GRANT" | "REVOKE";
  user: string;
  sku: string;
  reason: string;
  purchase: string;
}

export function grant(parts: Partial<ChangeRequest> = {}): ChangeRequest {
  const action = "GRANT";
  return { key: "key", action, user: "user", sku: "sku", reason: "r", purchase: "p", ...parts };
}

export interface HttpRequest {
  path: string;
  init?: RequestInit;
}

export function toHttp(
  { key, action, user, sku, reason, purchase }: ChangeRequest,
  headers: Record<string, string> = {},
): HttpRequest & { init: { headers: Record<string, string>; body: string } } {
  return {
    path: `/v1/entitlements/${action === "GRANT" ? "grants" : "revokes"}`,
    init: {
      method: "POST",
      headers: { "Content-Type": "application/json", "Idempotency-Key": key, ...headers },
      body: JSON.stringify({
        user_id: user,
        stock_keeping_unit: sku,
        reason,
        purchase_id: purchase,
      }),
    },
  };
}

const encoder = new TextEncoder();

/** The bytes of the request, for a load that writes them to a socket itself. */
export function toBytes(host: string, request: ChangeRequest): Uint8Array {
  const { path, init: { headers, body } } = toHttp(request);
  const bytes = encoder.encode(body);
  const head = Object.entries({ Host: host, ...headers, "Content-Length": bytes.length })
    .map(([name, value]) => `${name}: ${value}\r\n`).join("");
  return encoder.encode(`POST ${path} HTTP/1.1\r\n${head}\r\n${body}`);
}
