import { type Sql, sql } from "@kenri/shared/postgres/sql.ts";

// A payload (jsonb) without its user, and without what the caller wrote about the user.
export function erasedPayload(payload: Sql, pseudonym: string): Sql {
  return sql`${payload} || jsonb_build_object('user_id', ${pseudonym}::text) ||
         case when ${payload} ? 'ticket_id' then '{}'::jsonb else '{"source_id": "erased"}' end`;
}
