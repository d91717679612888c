import { type Database, query, utc } from "@kenri/shared/postgres/postgres.ts";
import { auditHash, markOfRow, personDigest } from "./hash.ts";
import { type HeadKind, headsOfKind, isOfHead } from "./heads.ts";
import type { Action, Status } from "../entitlement.ts";

// Reads entitlements and balances with their chains, from the last audit row back. Each row contains
// the time of the row before it, by which that row is found.

export interface Head {
  kind: HeadKind;
  user_id: string;
  item: string; // the stock keeping unit, or the unit of points
  stock_keeping_unit: string;
  status: Status | null;
  source: string | null;
  source_id: string | null;
  balance: number | null;
  version: number;
  updated_at: string;
  last_hash: string | null;
  hashed_at: string | null;
  is_audited: boolean; // its last change has an audit row
}

export interface Entry {
  audit_id: string;
  occurred_at: string;
  user_id: string;
  stock_keeping_unit: string;
  action: Action | "POINTS_ADD" | "POINTS_TAKE";
  source: string;
  source_id: string;
  version: number | null;
  point_amount: number | null;
  balance: number | null;
  hash: string | null;
  previous_hash: string | null;
  previous_at: string | null;
  mark: string | null;
  is_possible: boolean; // its time is not in the future, nor before the year 1
  is_intact: boolean | null; // its hash matches its content, and it belongs to this head
  is_erased: boolean;
  is_recorded: boolean; // an operation on record has erased it
}

// The time and the hash of the previous row.
export interface Link {
  at: string;
  hash: string;
}

export type Chain = Head & { rows: (Entry & { depth: number })[] };

export type Place = Pick<Head, "kind" | "user_id" | "item">;

// If somebody has changed the user of a row, it is still found by its hash.
const isLinked = (hash: string) =>
  `(${isOfHead("entry", "head")}
             or entry.hash = ${hash})`;

const numberOf = (name: string) =>
  `case when detail->>'${name}' ~ '^-?[0-9]{1,16}$' then detail->'${name}' end`;

const hashOfContent = auditHash(
  "chain",
  `coalesce(chain.erased, ${personDigest("chain")})`,
);

// `union` removes duplicates: if somebody has copied a row, the rows before it must not appear
// twice.
const rowsOfHead = `with recursive chain as (
         select 1 as depth, entry.*
         from entitlement_audit entry
         where entry.occurred_at = head.hashed_at
           and ${isLinked("head.last_hash")}
         union
         select chain.depth + 1, entry.*
         from chain
         join entitlement_audit entry
           on entry.occurred_at = chain.previous_at
           and ${isLinked("chain.previous_hash")}
         where chain.depth < $1
       )
       select coalesce(jsonb_agg(jsonb_build_object(
         'depth', depth, 'audit_id', audit_id, 'occurred_at', ${utc("occurred_at")},
         'action', action, 'source', source, 'source_id', source_id,
         'version', case when detail->>'version' ~ '^[1-9][0-9]{0,14}$' then detail->'version' end,
         'point_amount', ${numberOf("point_amount")}, 'balance', ${numberOf("balance")},
         'hash', encode(hash, 'hex'), 'previous_hash', encode(previous_hash, 'hex'),
         'previous_at', ${utc("previous_at")},
         'mark', ${markOfRow("chain")}::text,
         'is_possible', occurred_at >= '0001-01-01' and occurred_at < now() + interval '1 minute',
         'is_intact', ${isOfHead("chain", "head")}
           and ${hashOfContent} = hash,
         'is_erased', erased is not null,
         'is_recorded', user_id ~ '^erased-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' and exists (
           select from operations
           where operation_id = substr(chain.user_id, 8)::uuid
             and kind = 'ERASE_USER')
       ) order by depth), '[]') as rows
       from chain`;

const afterBoth = "(user_id, item) > ($2, $3)";

// Heads of one kind, in the order of their key, which is also the order of the cursor.
export function findChains(
  database: Database,
  after: Place,
  { ofOneUser, limit, depth }: { ofOneUser: boolean; limit: number; depth: number },
): Promise<Chain[]> {
  return query<Chain & Record<string, unknown>>(
    database,
    `select head.kind, head.user_id, head.item, head.stock_keeping_unit, head.status, head.source,
       head.source_id, head.balance, head.version, ${utc("head.updated_at")} as updated_at,
       encode(head.last_hash, 'hex') as last_hash, ${utc("head.hashed_at")} as hashed_at,
       head.updated_at is not distinct from head.hashed_at or exists (
         select from entitlement_audit entry
         where entry.occurred_at = head.updated_at
           and ${isOfHead("entry", "head")}
       ) as is_audited, chain.rows
     from (
       select *
       from (${headsOfKind[after.kind]}) as head
       where ${ofOneUser ? "user_id = $2 and item > $3" : afterBoth}
       order by user_id, item
       limit $4
     ) as head
     cross join lateral (
       ${rowsOfHead}
     ) as chain
     order by head.user_id, head.item`,
    [depth, after.user_id, after.item, limit],
  );
}

// Reads the next rows of a chain that is longer than `depth`.
export async function findMore(
  database: Database,
  { kind, user_id, stock_keeping_unit }: Head,
  { at, hash }: Link,
  depth: number,
): Promise<Chain["rows"]> {
  const [chain] = await query<Pick<Chain, "rows">>(
    database,
    `select chain.rows
     from (
       select $2::text as kind, $3::text as user_id, $4::text as stock_keeping_unit,
         $5::timestamptz as hashed_at, decode($6, 'hex') as last_hash
     ) as head
     cross join lateral (
       ${rowsOfHead}
     ) as chain`,
    [depth, kind, user_id, stock_keeping_unit, at, hash],
  );
  return chain?.rows ?? [];
}
