import { type Sql, sql } from "@kenri/shared/postgres/sql.ts";

// What has a key for longer than its stored answer: a transaction, a reservation, or one of both that
// was erased. Joined to `wanted`, which has the columns stored_key, caller and idempotency_key; at most
// one row for each.
export const joinsHolders: Sql =
  sql`left join point_transactions known on known.idempotency_key = wanted.stored_key
    left join point_reservations reserved
      on reserved.caller = wanted.caller
      and reserved.idempotency_key = wanted.idempotency_key
    left join erased_keys erased on erased.digest = sha256(convert_to(wanted.stored_key, 'UTF8'))`;
