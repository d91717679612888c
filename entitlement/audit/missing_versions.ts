import { type Database, query } from "@kenri/shared/postgres/postgres.ts";
import { markOfVersion } from "./hash.ts";
import type { Problem } from "./problem.ts";
import type { Gap } from "./verify_chain.ts";

// A version of an entitlement without a hashed row must have a row without a hash, written before there were chains
// or by a replica of that release. No index finds those rows, so their marks are added up first,
// and they are searched for only if the sums differ.

const addedUpAtMost = 10_000; // of one gap; only a forged gap can be larger

export function marksOf(gaps: Gap[]): bigint {
  let sum = 0n;
  for (const { user_id, stock_keeping_unit, first, last } of gaps) {
    if (last - first >= addedUpAtMost) return -1n; // no sum is negative
    for (let version = first; version <= last; version++) {
      sum += markOfVersion(user_id, stock_keeping_unit, version);
    }
  }
  return sum;
}

// A user who was erased twice has two pseudonyms, so all pseudonyms count as the same user.
export function findMissingVersions(
  database: Database,
  gaps: Gap[],
  until: string,
): Promise<Problem[]> {
  if (gaps.length === 0) return Promise.resolve([]);
  return query<Problem & Record<string, unknown>>(
    database,
    `with unhashed as materialized (
       select regexp_replace(user_id, '^erased-.*', 'erased') as user_id, stock_keeping_unit,
         case when detail->>'version' ~ '^[1-9][0-9]{0,14}$' then (detail->>'version')::bigint end
           as version
       from entitlement_audit
       where hash is null
         and action in ('GRANT', 'REVOKE')
         and occurred_at <= $2
     )
     select 'VERSION' as kind, gap.user_id, gap.stock_keeping_unit, gap.first as version,
       null as at, null as audit_id,
       format('of the versions %s to %s, %s have no row', first, last, last - first + 1 - found)
         as says
     from json_to_recordset($1) as gap (
       user_id text, stock_keeping_unit text, first bigint, last bigint)
     cross join lateral (
       select count(distinct version) as found
       from unhashed
       where unhashed.user_id = regexp_replace(gap.user_id, '^erased-.*', 'erased')
         and unhashed.stock_keeping_unit = gap.stock_keeping_unit
         and unhashed.version between gap.first and gap.last
     ) as counted
     where found < last - first + 1`,
    [JSON.stringify(gaps), until],
  );
}
