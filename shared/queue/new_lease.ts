import { literal, name, nothing, type Sql, sql } from "../postgres/sql.ts";
import { isUnfinishedByKey } from "./claim_statement.ts";
import type { NewLease } from "./handover.ts";
import { columnsOf, type TableDescription } from "./leased_table.ts";

// New rows that are written as leased to the worker of this process: the columns of an insert, their
// values, and the join that supplies the values.

export const leaseColumns: Sql = sql`status, locked_by, locked_at, lease_until, claim_token`;
export const leaseValues: Sql = sql`coalesce(lease.status, 'PENDING'), lease.locked_by,
    lease.locked_at, lease.lease_until, lease.claim_token`;

export interface NewRow {
  key: Sql;
  position: Sql;
  where?: Sql; // false for a row that must not be leased
}

// A row is PENDING if there is no lease, if an earlier row of its key is unfinished, or if `where`
// is false.
export function newLease<Content>(
  table: TableDescription<Content>,
  { key, position, where }: NewRow,
  lease: NewLease | undefined,
): Sql {
  if (!lease) return noLease;
  return sql`left join lateral (
    select ${literal(table.working)} as status, ${lease.worker}::text as locked_by,
      clock_timestamp() as locked_at,
      now() + make_interval(secs => ${lease.leaseMs}::float8 / 1000) as lease_until,
      ${lease.token}::uuid as claim_token
    where not exists (
      select from ${name(table.name)} earlier
      where ${isUnfinishedByKey("earlier")}
        and earlier.aggregate_key = ${key}
        and earlier.${table.order.position} < ${position}
      offset 0
    )${
    where
      ? sql`
    and ${where}`
      : nothing
  }
  ) as lease on true`;
}

// A statement of its own. If a value said whether there is a lease, PostgreSQL would plan the insert
// anew for each value, which takes longer than inserting a few rows.
const noLease = sql`cross join (
    select null::text as status, null::text as locked_by, null::timestamptz as locked_at,
      null::timestamptz as lease_until, null::uuid as claim_token
  ) as lease`;

// What the insert returns of the rows that it has leased.
export function leasedColumns<Content>(table: TableDescription<Content>): Sql {
  const { attempts } = columnsOf(table);
  return sql`${
    name(table.id)
  } as id, aggregate_key, ${attempts} as attempt_count, false as taken_over,
  ${table.content}`;
}
