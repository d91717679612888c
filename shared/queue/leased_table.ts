import type { Database, Transaction } from "../postgres/postgres.ts";
import { list, name, type Sql } from "../postgres/sql.ts";
import { everything } from "./claim_statement.ts";
import { leaseRows } from "./claims.ts";
import type { Lease, LeasedRow } from "./leased_row.ts";
import { type ClaimOptions, claimRepeatedly, type RepeatedClaim } from "./repeated_claims.ts";
import { type ClaimContext, type Job, nothingInHand, type Settlement } from "./job.ts";
import { newLease, type NewRow } from "./new_lease.ts";
import { extendLeases, markDone, settleEach } from "./settlements.ts";
import type { NewLease } from "./handover.ts";

// A table whose rows wait for work. Its owner describes it here; the statements that lease, extend,
// settle and release rows are the same for all tables (statements.sql). Such a table has the columns
//
//   status            PENDING, the working status, the done status, FAILED, or another one that its
//                     owner names
//   unfinished        generated: the status is PENDING or the working status
//   aggregate_key     never null; rows with the same key are worked on in the order of their positions
//   attempt_count     failed attempts so far; an expired lease counts as one
//   next_retry_at     no claim takes the row before this time
//   locked_by, locked_at, lease_until, claim_token    the lease; null without one
//   last_error        the error of the last failed attempt
//
// some of which may have other names, and two indexes: one in the order of claims, where unfinished, and one on (aggregate_key,
// position), where unfinished::int = 1. A table of attempts records what happened to its rows,
// except success: (id of the row, outcome, worker, begun_at, error).

export interface TableDescription<Content, Result = unknown> {
  name: string;
  id: string; // the column with the id of a row, a uuid
  attempts: string; // the name of the table of attempts
  working: string; // the status of a leased row
  order: ClaimOrder;
  content: Sql; // the columns that the work needs; the row is `claimed`
  lane?: Lane;
  columns?: Columns;
  claimSets?: Sql; // assignments of a claim besides the lease
  done: Done<Content, Result>;
  retried?: Ending;
  failed?: Ending;
  released?: Ending;
  attempt?: Attempt<Content, Result>;
}

export interface Columns {
  attempts: string; // in place of attempt_count
  retryAt: string; // in place of next_retry_at
  error: string; // in place of last_error
}

export function columnsOf({ columns }: { columns?: Columns }): Record<keyof Columns, Sql> {
  return {
    attempts: name(columns?.attempts ?? "attempt_count"),
    retryAt: name(columns?.retryAt ?? "next_retry_at"),
    error: name(columns?.error ?? "last_error"),
  };
}

export interface ClaimOrder {
  turn: Sql; // a claim finds the rows with the lowest values of this column first
  position: Sql; // the order of rows with the same key
  index: Sql; // the columns of the index that begins with `turn`
  isDueTime: boolean; // `turn` is a time, and no claim takes the row before it
}

// Rows of one key have increasing times.
export function oldestFirst(column: string): ClaimOrder {
  const turn = name(column);
  return { turn, position: turn, index: turn, isDueTime: false };
}

// The oldest row of a key need not have its lowest version.
export function oldestFirstByVersion(column: string, version: string): ClaimOrder {
  const index = list([name(column), name(version)]);
  return { turn: name(column), position: name(version), index, isDueTime: false };
}

// The column is generated as coalesce(next_retry_at, the time at which the row is due), so a claim
// reads neither rows of the future nor rows that wait for a retry. A row that is due when it is
// written has next_retry_at = now(), because most claims look back only a few seconds. A retry
// changes the column, so the rows of a key need another one as their position.
export function byDueTime(column: string, position: string): ClaimOrder {
  const [turn, index] = [name(column), name(column)];
  return { turn, position: name(position), index, isDueTime: true };
}

// How the lease of a row ends, besides what is the same for all tables.
export interface Ending {
  status?: Sql; // an expression of `row`, in place of the usual status
  set?: Sql; // assignments besides status and lease, of `row` and `settled`
  // What else the statement does. `changed` has the id, the error and `returning` of each row.
  returning?: Sql;
  also?: Sql;
}

// What it means to be done. The values of the results are joined to their rows as `settled`.
export interface Done<Content, Result> extends Omit<Ending, "status"> {
  status: string;
  values?: Record<string, DoneValue<Content, Result>>;
}

// What is recorded of each attempt besides its error, however it ended. The table of attempts and
// `settled` have these columns. Then attempts that were put off or that succeeded are recorded, too.
export interface Attempt<Content, Result> {
  columns: Record<string, "bigint" | "boolean" | "json" | "text" | "uuid">;
  // Without a result the work failed by an exception, or the row was given up before it.
  of(row: LeasedRow<Content>, result: Result | undefined): AttemptRecord;
  set: Sql; // assignments whenever something was tried or given up
  succeeded: Sql; // the recorded outcome of one that succeeded,
  putOff: Sql; // and of one that was put off, an expression of `changed`
}

export interface AttemptRecord {
  tried: boolean; // else only a row that is given up is recorded
  values: Record<string, string | number | boolean | null>;
}

interface DoneValue<Content, Result> {
  type: "bigint" | "float8" | "text" | "uuid";
  of(row: LeasedRow<Content>, result: Result): string | number | null;
}

export interface Lane {
  of: Sql; // the destination of a row, as a text; all rows of a key have the same one
  most: number; // a claim leases no more rows of one lane
}

type Rows<Content> = LeasedRow<Content>[];

export interface LeasedTable<Content, Result> {
  description: TableDescription<Content, Result>;
  // Looks at the whole table. A worker claims repeatedly.
  claim(
    database: Database,
    lease: Lease,
    limit: number,
    context?: ClaimContext,
  ): Promise<Rows<Content>>;
  claimRepeatedly(database: Database, options: ClaimOptions): RepeatedClaim<Content>;
  // What the jobs of all tables have in common; a job may replace the last two. `observe` gets the
  // ids of the rows whose lease the worker still had.
  jobOn(
    database: Database,
    options: ClaimOptions,
    observe?: (settled: Settlement<LeasedRow<Content>, Result>[], owned: Set<string>) => void,
  ): TableJob<Content, Result>;
  // Both return the ids of the rows whose lease the worker still had.
  extend(database: Database, rows: Rows<Content>, leaseMs: number): Promise<Set<string>>;
  settle(
    database: Database,
    settled: Settlement<LeasedRow<Content>, Result>[],
  ): Promise<Set<string>>;
  // For work that settles its rows itself, in the transaction of its effects. Fails with a message if
  // a lease was lost.
  markDone(
    tx: Transaction,
    done: { row: LeasedRow<Content>; result: Result }[],
    leaseLost: string,
  ): Promise<unknown>;
  // The part of an insert that leases new rows to the worker of this process.
  newLease(row: NewRow, lease: NewLease | undefined): Sql;
}

type TableJob<Content, Result> = Pick<
  Job<LeasedRow<Content>, Result>,
  "claim" | "settle" | "extend" | "traceparentOf" | "about"
>;

// For what needs only the description.
export type AnyTable = Pick<LeasedTable<unknown, unknown>, "description">;

export function leasedTable<Content extends object, Result>(
  table: TableDescription<Content, Result>,
): LeasedTable<Content, Result> {
  const leased: LeasedTable<Content, Result> = {
    description: table,
    claim: async (database, lease, limit, context = nothingInHand) => {
      const scan = { limit, window: 10 * limit, since: everything, context };
      return (await leaseRows(database, table, lease, scan)).rows;
    },
    claimRepeatedly: (database, options) => claimRepeatedly(database, table, options),
    jobOn: (database, options, observe = () => {}) => ({
      claim: leased.claimRepeatedly(database, options),
      settle: async (settled) => {
        const owned = await leased.settle(database, settled);
        observe(settled, owned);
        return owned;
      },
      extend: (rows) => leased.extend(database, rows, options.leaseMs),
      traceparentOf: () => null,
      about: ({ id }) => ({ [table.id]: id }),
    }),
    extend: (database, rows, leaseMs) => extendLeases(database, table, rows, leaseMs),
    settle: (database, settled) => settleEach(database, table, settled),
    markDone: (tx, done, leaseLost) => markDone(tx, table, done, leaseLost),
    newLease: (row, lease) => newLease(table, row, lease),
  };
  return leased;
}
