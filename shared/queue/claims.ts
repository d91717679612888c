import {
  isUnfinishedByKey,
  type Lease,
  type LeasedRow,
  leasedRow,
  type LeasedTable,
  recordsAttempt,
  type ReturnedRow,
} from "./leases.ts";
import { type Database, query } from "../postgres/postgres.ts";

// The claim: how the rows of a table are leased to a worker.

interface ClaimedRow extends ReturnedRow {
  attempt_count: number;
  taken_over: boolean;
  created: string;
}

export async function claimDue<Content>(
  database: Database,
  table: LeasedTable,
  lease: Lease,
  limit: number,
): Promise<LeasedRow<Content>[]> {
  return (await leaseDue<Content>(database, table, lease, limit, everything)).rows;
}

// Where a scan of the index of the oldest rows begins: at a time, as PostgreSQL writes it, or some
// time before now, by the database's clock.
type Since = string | { msAgo: number };

const everything = "-infinity";

interface Leased<Content> {
  rows: LeasedRow<Content>[];
  oldest: string | undefined; // when the oldest was created, as PostgreSQL writes it
}

// Leases the oldest rows that are due. A row is skipped while an earlier row of its key is not due,
// or is locked by another claim at this moment (and was therefore skipped, too).
async function leaseDue<Content>(
  database: Database,
  table: LeasedTable,
  { worker, leaseMs }: Lease,
  limit: number,
  since: Since,
): Promise<Leased<Content>> {
  const { name, id, working, positionColumn, columns, endsWithClaim } = table;
  const token = crypto.randomUUID();
  const rows = await query<ClaimedRow & Content>(
    database,
    `with ${findDue(table)}, claimable as (
       select place, taken_over
       from found
       where not exists (
         select from ${name} earlier
         where ${isUnfinishedByKey("earlier")}
           and earlier.aggregate_key = found.aggregate_key
           and earlier.${positionColumn} < found.${positionColumn}
           and earlier.ctid not in (select place from found)
         offset 0)
       order by ${positionColumn}
       limit $1
     ), claimed as (
       update ${name} row
       set status = $5,
         attempt_count = row.attempt_count + claimable.taken_over::int,
         next_retry_at = null,
         locked_by = $2,
         locked_at = clock_timestamp(),
         lease_until = now() + make_interval(secs => $3::float8 / 1000),
         claim_token = $4,
         last_error = null${endsWithClaim ? `, ${endsWithClaim}` : ""}
       from claimable
       where row.ctid = claimable.place
       returning row.*, claimable.taken_over
     ), changed as (
       select ${id} as id, 'The lease ran out' as error from claimed where taken_over
     ), ${recordsAttempt(table, "TAKEN_OVER")}
     select ${id} as id, aggregate_key, attempt_count, taken_over, created_at::text as created,
       ${columns}
     from claimed
     order by ${positionColumn}`,
    [
      limit,
      worker,
      leaseMs,
      token,
      working,
      ...(typeof since === "string" ? [since, null] : [null, since.msAgo]),
    ],
  );
  const [oldest] = rows.map(({ created }) => created).sort();
  return {
    oldest,
    rows: rows.map((row) => leasedRow<Content>(row, token, row.attempt_count, row.taken_over)),
  };
}

// The claim of a worker that claims repeatedly. While some transaction stays open, the index
// keeps an entry for each row that was finished since, and a scan from the beginning reads them
// all. So only one scan per poll interval begins there. The others begin where the last one found
// its oldest row or, in a table without backlog, some time before it, because commits can overtake
// each other. If the whole scan found nothing, they begin that long before its time.
export function claimRepeatedly<Content>(
  database: Database,
  table: LeasedTable,
  lease: Lease & { pollIntervalMs: number },
): (limit: number) => Promise<LeasedRow<Content>[]> {
  let since = (): Since => everything;
  let nextWholeScan = 0;
  return async (limit) => {
    const from = performance.now();
    const isWhole = from >= nextWholeScan;
    if (isWhole) since = () => everything;
    const { rows, oldest } = await leaseDue<Content>(database, table, lease, limit, since());
    const now = performance.now();
    if (isWhole) nextWholeScan = now + Math.max(lease.pollIntervalMs, 10 * (now - from));
    if (oldest !== undefined) {
      const found = rows.length < limit ? before(oldest) : oldest;
      since = () => found;
    } else if (isWhole) {
      since = () => ({ msAgo: performance.now() - from + overtakingMs });
    }
    return rows;
  };
}

const overtakingMs = 5_000;

function before(created: string): string {
  return new Date(Date.parse(created) - overtakingMs).toISOString();
}

// The rows that are due, locked, as `found`. They are identified by their place in the table
// (ctid), which does not change while a row is locked.
//
// `offset 0` makes PostgreSQL look up each key on its own. When few of many rows are unfinished,
// the planner believes that the index of unfinished rows is empty and prefers a join with all of
// it; the plan is kept even when thousands of rows wait. See also isUnfinishedByKey.
function findDue({ name, positionColumn, claimOrder }: LeasedTable): string {
  const isDue =
    `((row.status = 'PENDING' and (row.next_retry_at is null or row.next_retry_at <= now()))
           or (row.status = $5 and (row.lease_until is null or row.lease_until <= now())))`;
  const columns =
    `row.ctid as place, row.aggregate_key, row.${positionColumn}, row.status = $5 as taken_over`;
  const oldest = `
       select ${columns}
       from ${name} row
       where row.unfinished
         and ${isDue}
         and row.created_at >=
           coalesce($6::timestamptz, now() - make_interval(secs => $7::float8 / 1000))
         and not exists (
           select from ${name} earlier
           where ${isUnfinishedByKey("earlier")}
             and earlier.aggregate_key = row.aggregate_key
             and earlier.${positionColumn} < row.${positionColumn}
             and (earlier.next_retry_at > now() or earlier.lease_until > now())
           offset 0)
       order by ${claimOrder}
       limit $1
       for update skip locked`;
  if (claimOrder === positionColumn) return `found as materialized (${oldest})`;
  // The oldest row of a key need not be the first by position, so the earlier ones are added.
  // Otherwise a batch of rows that all wait for younger ones would be found again and again.
  return `due as materialized (${oldest}
     ), earlier as materialized (
       select row.*
       from (
         select aggregate_key, max(${positionColumn}) as last from due group by aggregate_key
       ) as by_key
       cross join lateral (
         select ${columns}
         from ${name} row
         where ${isUnfinishedByKey("row")}
           and row.aggregate_key = by_key.aggregate_key
           and row.${positionColumn} < by_key.last
           and ${isDue}
           and row.ctid not in (select place from due)
         offset 0
         for update skip locked
       ) as row
       order by row.${positionColumn}
       limit $1
     ), found as (
       select * from due union all select * from earlier
     )`;
}
