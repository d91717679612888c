import { type Sql, sql } from "@kenri/shared/postgres/sql.ts";

// The key of a notification, computed from its payload. It is the same as those in proto/: of a
// balance, of a ticket, or of an item.
export function keyOf(payload: Sql, userId: Sql = sql`${payload}->>'user_id'`): Sql {
  return sql`case
         when ${payload} ? 'unit' then
           'points:' || aggregate_key_of(${userId}, '') || (${payload}->>'unit')
         when ${payload} ? 'ticket_id' then
           'matchmaking:' || aggregate_key_of(${userId}, '') || (${payload}->>'ticket_id')
         else aggregate_key_of(${userId}, ${payload}->>'stock_keeping_unit') end`;
}
