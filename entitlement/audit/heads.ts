// The ends of the audit chains. Each entitlement has one, and so has each balance of points, whose
// rows have the stock keeping unit `points:<unit>`. A user may have a right of that name as well, so
// the action of a row decides to which kind of head it belongs.

export type HeadKind = "RIGHT" | "POINTS";

export const kindOfRow = (row: string): string =>
  `case when ${row}.action in ('POINTS_ADD', 'POINTS_TAKE') then 'POINTS' else 'RIGHT' end`;

export const isOfHead = (row: string, head: string): string =>
  `${row}.user_id = ${head}.user_id
             and ${row}.stock_keeping_unit = ${head}.stock_keeping_unit
             and ${kindOfRow(row)} = ${head}.kind`;

// In the order of user_id and item, by an index.
export const headsOfKind: Record<HeadKind, string> = {
  RIGHT: `select 'RIGHT' as kind, user_id, stock_keeping_unit as item, stock_keeping_unit, status,
         source, source_id, null::bigint as balance, version, updated_at, last_hash, hashed_at,
         aggregate_key_of(user_id, stock_keeping_unit) as aggregate_key
       from entitlements`,
  POINTS: `select 'POINTS' as kind, user_id, unit as item, 'points:' || unit as stock_keeping_unit,
         null as status, null as source, null as source_id, balance, version, updated_at, last_hash,
         updated_at as hashed_at, points_key_of(user_id, unit) as aggregate_key
       from point_root`,
};

export const allHeads = `${headsOfKind.RIGHT}
       union all
       ${headsOfKind.POINTS}`;
