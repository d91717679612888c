import { list, listOf, literal, name, nothing, type Sql, sql } from "../postgres/sql.ts";
import type { NewLease } from "./handover.ts";
import type { ClaimContext } from "./job.ts";
import { columnsOf, type TableDescription } from "./leased_table.ts";
import { recordsAttempt } from "./settle_statement.ts";

// What a claim looks at.
export interface Scan {
  limit: number; // how many rows it leases at most
  window: number; // how many due rows it looks at
  since: Since;
  context: ClaimContext;
}

// Where a scan of the index of unfinished rows begins: at a time, as PostgreSQL writes it, or some
// time before now, by the database's clock.
export type Since = string | { msAgo: number };

export const everything = "-infinity";

// A claim looks at the due rows in the order of their turns (`seen`), by key in the order of their
// positions, and leases those that wait for no other row (`free`). A row waits for an
// earlier one of its key if that is not due, is leased to another worker, is not among the rows
// seen, or is locked by another claim at this moment and was therefore not `found`. The rows that
// this worker has in hand make no row wait: its worker appends the rows behind them to their lines.
//
// Rows are identified by their place in the table (ctid), which does not change while a row is
// locked.
export function claimStatement<Content>(
  table: TableDescription<Content>,
  lease: NewLease,
  { limit, window, since, context }: Scan,
): Sql {
  const { order, lane, content } = table;
  const id = name(table.id);
  const { attempts } = columnsOf(table);
  return sql`with ${seenRows(table, since, window)}, ${freeRows(table, context, limit)},
${leasedRows(table, lease)}, changed as (
  select ${id} as id, 'The lease ran out' as error from claimed where taken_over
), ${recordsAttempt(table, literal("TAKEN_OVER"))}
select ${id} as id, aggregate_key, ${attempts} as attempt_count, taken_over,
  ${lane ? sql`${lane.of} as lane, ` : nothing}${content},
  case when ${id} is not distinct from scan.shown_with then scan.found end as scan
from (
  select json_build_object(
      'seen', oldest.count,
      'more', oldest.count >= ${window} or free.count >= ${limit} or cut.turn is not null,
      'reached', least(
        oldest.turn, cut.turn, case when free.count >= ${limit} then free.turn end)::text${
    order.isDueTime ? nextDue(table) : nothing
  }
    ) as found,
    (select ${id} from claimed limit 1) as shown_with
  from (select count(*), max(turn) as turn from oldest) as oldest,
    (select count(*), max(turn) as turn from free) as free,
    cut
) as scan
left join claimed on true
order by ${order.position}`;
}

// How long it is until the earliest row of the future is due, by the clock of the database. Every other
// row was due when the statement began.
function nextDue<Content>({ name: table, order: { turn } }: TableDescription<Content>): Sql {
  return sql`,
      'nextDueMs', (
        select extract(epoch from ${turn} - clock_timestamp())::float8 * 1000
        from ${name(table)}
        where unfinished
          and ${turn} > now()
        order by ${turn}
        limit 1)`;
}

// The rows that are due, as many as the claim may look at.
function seenRows<Content>(table: TableDescription<Content>, since: Since, window: number): Sql {
  const { turn, position, index } = table.order;
  const lane = table.lane ? sql`, ${table.lane.of} as lane` : nothing;
  const columns = sql`row.ctid as place, row.aggregate_key, row.${position} as position,
    row.${turn} as turn${lane}`;
  const [at, msAgo] = typeof since === "string" ? [since, null] : [null, since.msAgo];
  const oldest = sql`oldest as materialized (
  select ${columns}
  from ${name(table.name)} row
  where row.unfinished
    and row.${turn} >=
      coalesce(${at}::timestamptz, now() - make_interval(secs => ${msAgo}::float8 / 1000))
    and ${isDue(table)}
  order by ${index}
  limit ${window}
)`;
  if (turn.text === position.text) return sql`${oldest}, seen as (select * from oldest)`;
  // The rows of a key are leased by position. So those before an old row are looked at with it, and
  // a row takes its turn when all before it have had theirs. Otherwise a claim would look again and
  // again at old rows that all wait for younger ones.
  return sql`${oldest}, earlier as materialized (
  select row.*
  from (select aggregate_key, max(position) as last from oldest group by aggregate_key) as line
  cross join lateral (
    select ${columns}
    from ${name(table.name)} row
    where ${isUnfinishedByKey("row")}
      and row.aggregate_key = line.aggregate_key
      and row.${position} < line.last
      and ${isDue(table)}
      and row.ctid not in (select place from oldest)
    order by row.${position}
    limit ${window}
  ) as row
  order by row.position
  limit ${window}
), seen as (
  select place, aggregate_key, position,
    max(turn) over (partition by aggregate_key order by position) as turn${
    table.lane ? sql`, lane` : nothing
  }
  from (select * from oldest union all select * from earlier) as due
)`;
}

// The rows that wait for no other row.
function freeRows<Content>(
  { name: table, order, lane }: TableDescription<Content>,
  { tokens, lanes }: ClaimContext,
  limit: number,
): Sql {
  const [ofLane, noLane] = lane ? [sql`, lane`, sql`, null`] : [nothing, nothing];
  return sql`blocked as materialized (
  select line.aggregate_key, blocking.position
  from (select aggregate_key, max(position) as last from seen group by aggregate_key) as line
  cross join lateral (
    select earlier.${order.position} as position
    from ${name(table)} earlier
    where ${isUnfinishedByKey("earlier")}
      and earlier.aggregate_key = line.aggregate_key
      and earlier.${order.position} < line.last
      and (earlier.claim_token = any(${listOf(tokens)}::uuid[])) is not true
      and earlier.ctid not in (select place from seen)
    order by earlier.${order.position}
    limit 1
  ) as blocking
), ${lane ? name("unblocked") : name("free")} as materialized (
  select place, aggregate_key, turn, nth${ofLane}
  from (
    select place, aggregate_key, turn${ofLane}, row_number() over line as nth,
      bool_or(place is null) over line as is_blocked
    from (
      select place, aggregate_key, position, turn${ofLane} from seen
      union all
      select null, aggregate_key, position, null${noLane} from blocked
    ) as one
    window line as (partition by aggregate_key order by position)
  ) as one
  where not is_blocked${lane ? ofEachLane(lane.most, limit, lanes) : oldestOf(limit)}`;
}

// Leases the free rows that are still due, except behind a row that another claim has locked.
function leasedRows<Content>(
  table: TableDescription<Content>,
  { worker, leaseMs, token }: NewLease,
): Sql {
  const { order, claimSets } = table;
  const [rows, working] = [name(table.name), literal(table.working)];
  const { attempts, retryAt, error } = columnsOf(table);
  const sets = [
    // In a table by due time it would change the index.
    ...(order.isDueTime ? [] : [sql`${retryAt} = null`]),
    ...(claimSets ? [claimSets] : []),
  ];
  return sql`found as materialized (
  select row.ctid as place, free.aggregate_key, free.nth, row.status = ${working} as taken_over
  from free
  join ${rows} row on row.ctid = free.place
  where ${isDue(table)}
  for update of row skip locked
), missing as materialized (
  select aggregate_key, nth
  from free
  where place not in (select place from found)
), claimable as (
  select place, taken_over
  from found
  where not exists (
    select from missing
    where missing.aggregate_key = found.aggregate_key
      and missing.nth < found.nth)
), claimed as (
  update ${rows} row
  set status = ${working},
    ${attempts} = row.${attempts} + claimable.taken_over::int,
    locked_by = ${worker},
    locked_at = clock_timestamp(),
    lease_until = now() + make_interval(secs => ${leaseMs}::float8 / 1000),
    claim_token = ${token},
    ${error} = null${list([nothing, ...sets])}
  from claimable
  where row.ctid = claimable.place
  returning row.*, claimable.taken_over
)`;
}

function oldestOf(limit: number): Sql {
  return sql`
  order by turn, nth
  limit ${limit}
), cut as (select null::timestamptz as turn)`;
}

// Only so many rows of each lane; `cut` is the turn of the first row that is left out for that.
function ofEachLane(most: number, limit: number, leftOut: string[]): Sql {
  return sql`
    and lane <> all(${leftOut})
), numbered as materialized (
  select *, row_number() over (partition by lane order by turn, nth) as of_lane
  from unblocked
), free as materialized (
  select place, aggregate_key, turn, nth
  from numbered
  where of_lane <= ${most}
  order by turn, nth
  limit ${limit}
), cut as (select min(turn) as turn from numbered where of_lane > ${most})`;
}

function isDue<Content>(table: TableDescription<Content>): Sql {
  const { order } = table;
  const { retryAt } = columnsOf(table);
  const retryAndLease = sql`(row.${retryAt} is null or row.${retryAt} <= now())
    and (row.lease_until is null or row.lease_until <= now())`;
  return order.isDueTime
    ? sql`${retryAndLease}
    and row.${order.turn} <= now()`
    : retryAndLease;
}

// Means `unfinished`, but written so that it matches only the index of keys. With `unfinished` the
// planner might take the index of the claim order, which looks just as empty.
export function isUnfinishedByKey(row: string): Sql {
  return sql`${name(row)}.unfinished::int = 1`;
}
