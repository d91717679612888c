import { type Database, query, utc } from "@kenri/shared/postgres/postgres.ts";
import { auditHash, markOfRow, personDigest } from "./hash.ts";
import type { Entry, Head, Link } from "./verify_chain.ts";

// Reads entitlements with their chains, from the last audit row back. Each row says when the row
// before it occurred, and by that it is found.

export type Chain = Head & { rows: (Entry & { depth: number })[] };

export interface Place {
  user_id: string;
  stock_keeping_unit: string;
}

// A row that was given to somebody else is found by its hash.
const isOfHead = (hash: string) =>
  `(entry.user_id = head.user_id and entry.stock_keeping_unit = head.stock_keeping_unit
             or entry.hash = ${hash})`;

const hashOfContent = auditHash(
  "chain",
  `coalesce(chain.erased, ${personDigest("chain")})`,
);

// With `union`, because a row that somebody doubled must not double all before it.
const rowsOfHead = `with recursive chain as (
         select 1 as depth, entry.*
         from entitlement_audit entry
         where entry.occurred_at = head.hashed_at
           and ${isOfHead("head.last_hash")}
         union
         select chain.depth + 1, entry.*
         from chain
         join entitlement_audit entry
           on entry.occurred_at = chain.previous_at
           and ${isOfHead("chain.previous_hash")}
         where chain.depth < $1
       )
       select coalesce(jsonb_agg(jsonb_build_object(
         'depth', depth, 'audit_id', audit_id, 'occurred_at', ${utc("occurred_at")},
         'action', action, 'source', source, 'source_id', source_id,
         'version', case when detail->>'version' ~ '^[1-9][0-9]{0,14}$' then detail->'version' end,
         'hash', encode(hash, 'hex'), 'previous_hash', encode(previous_hash, 'hex'),
         'previous_at', ${utc("previous_at")},
         'mark', ${markOfRow("chain")}::text,
         'is_possible', occurred_at >= '0001-01-01' and occurred_at < now() + interval '1 minute',
         'is_intact', user_id = head.user_id and stock_keeping_unit = head.stock_keeping_unit
           and ${hashOfContent} = hash,
         'is_erased', erased is not null,
         'is_recorded', user_id ~ '^erased-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' and exists (
           select from operations
           where operation_id = substr(chain.user_id, 8)::uuid
             and kind = 'ERASE_USER')
       ) order by depth), '[]') as rows
       from chain`;

const afterBoth = "(user_id, stock_keeping_unit) > ($2, $3)";

// In the order of their key, which is the order of a cursor.
export function findChains(
  database: Database,
  after: Place,
  { ofOneUser, limit, depth }: { ofOneUser: boolean; limit: number; depth: number },
): Promise<Chain[]> {
  return query<Chain & Record<string, unknown>>(
    database,
    `select head.user_id, head.stock_keeping_unit, head.status, head.source, head.source_id,
       head.version, ${utc("head.updated_at")} as updated_at,
       encode(head.last_hash, 'hex') as last_hash, ${utc("head.hashed_at")} as hashed_at,
       head.updated_at is not distinct from head.hashed_at or exists (
         select from entitlement_audit entry
         where entry.occurred_at = head.updated_at
           and entry.user_id = head.user_id
           and entry.stock_keeping_unit = head.stock_keeping_unit
       ) as is_audited, chain.rows
     from (
       select *
       from entitlements
       where ${ofOneUser ? "user_id = $2 and stock_keeping_unit > $3" : afterBoth}
       order by user_id, stock_keeping_unit
       limit $4
     ) as head
     cross join lateral (
       ${rowsOfHead}
     ) as chain
     order by head.user_id, head.stock_keeping_unit`,
    [depth, after.user_id, after.stock_keeping_unit, limit],
  );
}

// Where a chain that is longer goes on.
export async function findMore(
  database: Database,
  { user_id, stock_keeping_unit }: Place,
  { at, hash }: Link,
  depth: number,
): Promise<Chain["rows"]> {
  const [chain] = await query<Pick<Chain, "rows">>(
    database,
    `select chain.rows
     from (
       select $2::text as user_id, $3::text as stock_keeping_unit, $4::timestamptz as hashed_at,
         decode($5, 'hex') as last_hash
     ) as head
     cross join lateral (
       ${rowsOfHead}
     ) as chain`,
    [depth, user_id, stock_keeping_unit, at, hash],
  );
  return chain?.rows ?? [];
}
