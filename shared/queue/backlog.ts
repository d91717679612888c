import type { LeasedTable } from "./leases.ts";

export interface Backlog extends Record<string, unknown> {
  waiting: number;
  oldest_waiting_seconds: number | null;
}

// The columns of a select that reports what waits in a table: how many rows, counted up to $1, and
// the age of the oldest. Each reads only the index of unfinished rows.
export function backlogColumns({ name, claimOrder }: LeasedTable): string {
  return `(select count(*) from (
          select from ${name} where unfinished order by ${claimOrder} limit $1) as found) as waiting,
       (select extract(epoch from now() - created_at)::float8
        from ${name} where unfinished order by ${claimOrder} limit 1) as oldest_waiting_seconds`;
}
