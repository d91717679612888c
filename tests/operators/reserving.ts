// Reservations and points over HTTP, as callers ask for them.
import { type Answer, call } from "../support/api.ts";

const posted = (path: string, some: Record<string, unknown>) =>
(
  url: string,
  fields: Record<string, unknown> = {},
  key: string = crypto.randomUUID(),
): Promise<Answer> =>
  call(`${url}${path}`, {
    method: "POST",
    headers: { "Content-Type": "application/json", "Idempotency-Key": key },
    body: JSON.stringify({ ...some, ...fields }),
  });

const points = { user_id: "ann", point_amount: 10 };
const cause = { reason: "purchase", source_id: "p-1" };
const past = { execute_at: "2026-01-02T03:04:05Z" };

export const reserve = posted("/v1/points/reservations", { ...points, ...past });
export const grantPoints = posted("/v1/points/grants", { ...points, ...cause });
export const spendPoints = posted("/v1/points/spends", { ...points, ...cause });
export const reserveRight = posted("/v1/entitlements/reservations", {
  ...{ action: "GRANT", user_id: "ann", stock_keeping_unit: "book", reason: "purchase" },
  ...{ purchase_id: "p-1", ...past },
});

export function inMs(ms: number): string {
  return new Date(Date.now() + ms).toISOString();
}
