// Rows that the service would write, for tests that prepare tables without its API.
import { ask } from "../../tools/servers/asking.ts";

export async function insertEntitlement(
  ownerUrl: string,
  { user_id, stock_keeping_unit, version }: {
    user_id: string;
    stock_keeping_unit: string;
    version: number;
  },
): Promise<void> {
  await ask(
    ownerUrl,
    `insert into entitlements
       (user_id, stock_keeping_unit, status, granted_at, source, source_id, version, updated_at)
     values ($1, $2, 'ACTIVE', now(), 'purchase', 'p-1', $3, now())`,
    [user_id, stock_keeping_unit, version],
  );
}
