import { literal, type Sql, sql } from "../postgres/sql.ts";
import type { Operation } from "./operations.ts";

// The part of a statement that records an operation with the rows that it changes: those of the
// part `chosen`. Nothing is recorded if there are none.
export function recordsOperation(
  { id, who, reason }: Operation,
  { kind, layer, item }: { kind: string; layer: string; item: Sql },
): Sql {
  return sql`operation as (
       insert into operations (operation_id, kind, layer, who, reason, items)
       select ${id}::uuid, ${literal(kind)}, ${
    literal(layer)
  }, ${who}, ${reason}, jsonb_agg(${item})
       from chosen
       having count(*) > 0
     )`;
}
