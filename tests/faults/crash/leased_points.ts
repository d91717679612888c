// The crashes that every leased table has, because the same statements claim its rows, settle them
// and give them up. They are found by the names of the table and of its states.
import type { AnyTable } from "../../../shared/queue/leased_table.ts";
import { withClient } from "../../../tools/servers/asking.ts";
import type { Settings } from "../../../tools/servers/service_process.ts";
import { type FaultPoint, statement } from "./fault_point.ts";
import { killInFrontOf } from "./kill_in_front_of.ts";
import type { Counts } from "./observer.ts";
import type { CrashPoint, System } from "./point.ts";

export interface LeasedWork<Service extends string, On> {
  of: Service;
  table: AnyTable;
  maxAttempts: string; // the name of the setting
  words: {
    row: string; // what one row is called
    rows: string; // how its states are counted
    attempts: string; // and its failed attempts
    work: string; // what is done for a row, as a noun
    worked: string; // and as a participle
  };
  add(on: On): Promise<unknown>; // adds a row that is due
  isOneCommit?: boolean; // the work and what marks its row as done
  withholds?: string; // a statement of a later step, which would change what is left behind
  before: Counts; // what exists besides the row before the work
  adds: Counts; // what the work adds to that
  finished: Result; // when nothing is left to do
  again: Partial<Result> & { next: string }; // if the work is done twice
  settled: { next: string; also?: Also; counts?: Counts };
  gaveUp: Omit<Result, "ends"> & { also?: Also }; // after the last attempt
  failsAs?: { status: string; retry: string }; // if it is not FAILED; part of the statement
  fails?: Failing<On>; // absent: this work can't fail, and only leases expire
}

type Result = Pick<CrashPoint<string, unknown>, "ends" | "sends" | "seen">;

/** What else the statement writes that marks a row as done, or the one that gives it up. */
interface Also {
  is: string;
  table: string;
  counts: Counts;
}

interface Failing<On> {
  ownSettings?: Settings; // the work fails with these,
  begin?(on: On): Promise<void>; // or after this, which needs the service,
  end?(on: On): Promise<void>; // and until this
}

export function leasedPoints<Service extends string, On extends System<Service>>(
  on: LeasedWork<Service, On>,
): CrashPoint<Service, On>[] {
  const { of, add, before, adds, finished, settled, isOneCommit, words: { row, work } } = on;
  const { name: rows, done: { status } } = on.table.description;
  const { claim, done, commit } = statementsOf(on);
  const counts = countsOf(on);
  const common = { of, before: add, ...finished };
  const beforeSettle = {
    ...common,
    dies: isOneCommit
      ? `in the commit of the ${work}, before ${status}`
      : `after the ${work}, before the settle`,
    at: done("before"),
    leaves: { ...counts.claimed, ...adds },
    ends: counts.takenOver,
    ...on.again,
  };
  return [
    {
      ...common,
      dies: `after the claim, before the ${work}`,
      at: claim("after"),
      leaves: counts.claimed,
      next: `The lease expires; the ${row} is claimed again, which counts as an attempt`,
      ends: counts.takenOver,
    },
    {
      ...common,
      dies: `after the claim that takes ${
        /^[aeiou]/.test(row) ? "an" : "a"
      } ${row} over, before the ${work}`,
      at: claim("after"),
      before: async (system) => {
        await add(system);
        await withClient(system.owners[of], (owner) => owner.query(leaseRanOut(on)));
      },
      leaves: { ...counts.claimed, [on.words.attempts]: 1 },
      next: "The same; each expired lease counts as an attempt",
      ends: { ...finished.ends, [on.words.attempts]: 2 },
    },
    beforeSettle,
    ...(settled.also ? [within(beforeSettle, status, { ...settled.also, rows }, add)] : []),
    {
      ...common,
      dies: isOneCommit ? `after the commit of the ${work}` : "after the settle",
      at: isOneCommit ? commit : done("after"),
      leaves: {
        ...{ ...before, ...adds, [`${on.words.rows} ${status}`]: 1 },
        ...{ ...settled.also?.counts, ...settled.counts },
      },
      next: settled.next,
    },
    ...(on.fails ? failures(on, on.fails) : [{
      ...lastAttempt(on),
      before: add,
      dies: `after the last claim, before the ${work}`,
      at: claim("after"),
    }]),
  ];
}

function failures<Service extends string, On extends System<Service>>(
  on: LeasedWork<Service, On>,
  { ownSettings = {}, begin, end }: Failing<On>,
): CrashPoint<Service, On>[] {
  const { of, finished, gaveUp: { also }, words: { work, worked } } = on;
  const { retry, failed } = statementsOf(on);
  const rows = on.table.description.name;
  const counts = countsOf(on);
  const add = async (system: On) => {
    await begin?.(system);
    await on.add(system);
  };
  const common = {
    ...(begin ? { meanwhile: add } : { before: add }),
    ...(end ? { afterwards: end } : {}),
    ownSettings,
  };
  const lastFailure = {
    ...lastAttempt(on),
    ...common,
    dies: `between the last failure of a ${work} and ${statusOfFailure(on)}`,
    at: failed("before"),
  };
  return [
    {
      ...{ of, ...common, ...finished },
      dies: `between the failure of a ${work} and its retry`,
      at: retry("before"),
      leaves: counts.claimed,
      next: `The lease expires instead, which also counts as an attempt; then it is ${worked}`,
      ends: counts.takenOver,
    },
    lastFailure,
    ...(also
      ? [
        within(lastFailure, statusOfFailure(on), { ...also, rows }, add),
        {
          ...lastFailure,
          dies: `after ${statusOfFailure(on)} and ${also.is}`,
          at: failed("after"),
          leaves: counts.failed,
          next: "Nothing",
        },
      ]
      : []),
  ];
}

/** As a worker leaves it that has died before. */
function leaseRanOut({ table: { description } }: LeasedWork<string, never>): string {
  const { name, working } = description;
  return `update ${name}
    set status = '${working}', locked_by = 'dead', locked_at = now() - interval '2 seconds',
      lease_until = now() - interval '1 second', claim_token = gen_random_uuid()`;
}

/** The process that comes next does not work on the row again. */
function lastAttempt<Service extends string, On>(on: LeasedWork<Service, On>) {
  const { of, maxAttempts, gaveUp: { also, ...seen }, words: { work } } = on;
  const counts = countsOf(on);
  const written = also ? ` with ${also.is}` : "";
  return {
    of,
    settings: { [maxAttempts]: "1" },
    leaves: counts.claimed,
    next: `The expired lease was the last attempt: ${
      statusOfFailure(on)
    }${written}, without another ${work}`,
    ends: counts.failed,
    ...seen,
  };
}

const statusOfFailure = (on: Pick<LeasedWork<string, never>, "failsAs">) =>
  on.failsAs?.status ?? "FAILED";

function statementsOf(on: LeasedWork<string, never>) {
  const { table: { description }, withholds, failsAs } = on;
  const { name, working, done } = description;
  const also = withholds === undefined ? {} : { withholds };
  const at = (text: string) => (when: FaultPoint["when"]) => ({
    ...statement(when, `update ${name} row\n  set status = ${text}`),
    ...also,
  });
  return {
    commit: { ...statement("after", "commit"), ...also },
    claim: at(`'${working}'`),
    done: at(`'${done.status}'`),
    retry: failsAs
      ? (when: FaultPoint["when"]) => statement(when, failsAs.retry)
      : at("'PENDING',\n    attempt_count = row.attempt_count + 1"),
    failed: at(`'${statusOfFailure(on)}'`),
  };
}

function countsOf(on: LeasedWork<string, never>) {
  const { table, words, before, finished, gaveUp } = on;
  const attempts = { [words.attempts]: 1 };
  return {
    claimed: { ...before, [`${words.rows} ${table.description.working}`]: 1 },
    takenOver: { ...finished.ends, ...attempts },
    failed: {
      ...before,
      [`${words.rows} ${statusOfFailure(on)}`]: 1,
      ...attempts,
      ...gaveUp.also?.counts,
    },
  };
}

/** The same crash, but a lock on the other table stops the statement in its middle. */
function within<Service extends string, On extends System<Service>>(
  { at: _at, before: _before, ...point }: CrashPoint<Service, On>,
  status: string,
  { is, table, rows }: Also & { rows: string },
  add: (on: On) => Promise<unknown>,
): CrashPoint<Service, On> {
  const { of } = point;
  return {
    ...point,
    dies: `within the statement, between ${status} and ${is}`,
    meanwhile: (on, service) =>
      killInFrontOf(
        { table, statement: `update ${rows} row` },
        on.owners[of],
        of,
        service,
        () => add(on),
      ),
    next: "Neither was written; the same as in the row above",
  };
}
