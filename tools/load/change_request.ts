// A change as a client asks for it.
import { command, type HttpRequest } from "./http_request.ts";

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

export function toHttp(
  { key, action, user, sku, reason, purchase }: ChangeRequest,
  headers: Record<string, string> = {},
): Required<HttpRequest> {
  const path = `/v1/entitlements/${action === "GRANT" ? "grants" : "revokes"}`;
  const fields = { user_id: user, stock_keeping_unit: sku, reason, purchase_id: purchase };
  return command(path, key, fields, headers);
}
