// The crashes that everything has which is leased, because the same steps claim it, settle it and give
// it up. What these steps are, a table (table_leases.ts) or a stream of Redis (stream_leases.ts) says.
import type { Settings } from "../../../tools/servers/service_process.ts";
import type { FaultPoint } from "./fault_point.ts";
import { killInFrontOf } from "./kill_in_front_of.ts";
import type { Counts } from "./observer.ts";
import type { CrashPoint, System } from "./point.ts";

/** How rows are leased. */
export interface Leases<On> {
  table: string; // its name, where statements can be stopped within a table
  states: { leased: string; done?: string; failed: string }; // as they are counted; absent: it is gone
  at: Record<"claim" | "done" | "commit" | "retry" | "failed", (when: When) => FaultPoint>;
  keepsAttempts: boolean; // of what is done
  runOut(on: On): Promise<unknown>; // leases all rows, as a worker leaves them that has died before
}

type When = FaultPoint["when"];

export interface LeasedWork<Service extends string, On> {
  of: Service;
  leases: Leases<On>;
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
  before: Counts; // what exists besides the row before the work
  adds: Counts; // what the work adds to that
  finished: Result; // when nothing is left to do
  again: Partial<Result> & { next: string }; // if the work is done twice
  settled: { next: string; also?: Also; counts?: Counts };
  gaveUp: Omit<Result, "ends"> & { also?: Also }; // after the last attempt
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
  const { table: rows, states: { done: status }, at: { claim, done, commit } } = on.leases;
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
        await on.leases.runOut(system);
      },
      leaves: { ...counts.claimed, [on.words.attempts]: 1 },
      next: "The same; each expired lease counts as an attempt",
      ends: { ...finished.ends, ...(on.leases.keepsAttempts ? { [on.words.attempts]: 2 } : {}) },
    },
    beforeSettle,
    ...(settled.also ? [within(beforeSettle, `${status}`, { ...settled.also, rows }, add)] : []),
    {
      ...common,
      dies: isOneCommit ? `after the commit of the ${work}` : "after the settle",
      at: isOneCommit ? commit("after") : done("after"),
      leaves: {
        ...{ ...before, ...adds, ...(status ? { [`${on.words.rows} ${status}`]: 1 } : {}) },
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
  const { table: rows, states, at: { retry, failed } } = on.leases;
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
    dies: `between the last failure of a ${work} and ${states.failed}`,
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
        within(lastFailure, states.failed, { ...also, rows }, add),
        {
          ...lastFailure,
          dies: `after ${states.failed} and ${also.is}`,
          at: failed("after"),
          leaves: counts.failed,
          next: "Nothing",
        },
      ]
      : []),
  ];
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
    next:
      `The expired lease was the last attempt: ${on.leases.states.failed}${written}, without another ${work}`,
    ends: counts.failed,
    ...seen,
  };
}

function countsOf<On>(on: LeasedWork<string, On>) {
  const { leases: { states, keepsAttempts }, words, before, finished, gaveUp } = on;
  const attempts = { [words.attempts]: 1 };
  return {
    claimed: { ...before, [`${words.rows} ${states.leased}`]: 1 },
    takenOver: { ...finished.ends, ...(keepsAttempts ? attempts : {}) },
    failed: {
      ...before,
      [`${words.rows} ${states.failed}`]: 1,
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
