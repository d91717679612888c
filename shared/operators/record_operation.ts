import { literal, name, type Sql, sql } from "../postgres/sql.ts";
import type { Operation } from "./operations.ts";

// The part of a statement that records an operation, with an item for each row of the part `of`.
// Without rows nothing was changed, and nothing is recorded.
export function recordsOperation(
  { id, who, reason }: Operation,
  { kind, layer, item, of }: { kind: string; layer: string; item: Sql; of: string },
): Sql {
  return sql`operation as (
       insert into operations (operation_id, kind, layer, who, reason, items)
       select ${id}::uuid, ${literal(kind)}, ${literal(layer)}, ${who}, ${reason},
         jsonb_agg(jsonb_build_object(${item}))
       from ${name(of)}
       having count(*) > 0
     )`;
}
