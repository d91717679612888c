import { z } from "@hono/zod-openapi";
import { query, type Transaction } from "@kenri/shared/postgres/postgres.ts";
import { sql } from "@kenri/shared/postgres/sql.ts";
import { encryptSecret } from "./secrets.ts";

// New secrets in the database, and in the only answer that shows each.

export interface NewSecret {
  kind: "secret";
  endpointId: string;
  secret: string;
}

export const secretExample = "whsec_(base64 of 32 bytes)";

export const secretField = {
  secret: z.string().optional().openapi({
    description: "Shown once: the answer to a repeated request has none",
  }),
};

export async function storeSecrets(
  tx: Transaction,
  secrets: NewSecret[],
  keys: Uint8Array[],
): Promise<void> {
  const rows = secrets.map(({ endpointId, secret }) => ({
    endpoint_id: endpointId,
    ciphertext: encryptSecret(keys, endpointId, secret).toHex(),
  }));
  await query(
    tx,
    sql`
    insert into endpoint_secrets (endpoint_id, ciphertext)
    select endpoint_id, decode(ciphertext, 'hex')
    from json_to_recordset(${JSON.stringify(rows)}) as (endpoint_id uuid, ciphertext text)`,
  );
}
