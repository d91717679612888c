import { z } from "@hono/zod-openapi";
import { type Database, query, utc } from "@kenri/shared/postgres/postgres.ts";

// The entry of an order in the ledger: how it ended, and what the receiver answered.

export const ledgerSchema = z.object({
  idempotency_key: z.string(),
  status: z.string(),
  http_status: z.int().nullable(),
  reason_code: z.string().nullable(),
  response: z.unknown().openapi({ description: "What the receiver answered, up to 4 KiB" }),
  attempts: z.int(),
  first_sent_at: z.string().nullable(),
  decided_at: z.string(),
  order_id: z.uuid().nullable(),
}).openapi("LedgerEntry");

export type LedgerLook = z.infer<typeof ledgerSchema>;

export async function findLedgerEntry(
  database: Database,
  key: string,
): Promise<LedgerLook | null> {
  const [entry] = await query<LedgerLook>(
    database,
    `select idempotency_key, status, http_status, reason_code,
       response_payload_json as response, attempts, ${utc("first_sent_at")} as first_sent_at,
       ${utc("decided_at")} as decided_at, order_id
     from idempo_ledger
     where idempotency_key = $1`,
    [key],
  );
  return entry ?? null;
}
