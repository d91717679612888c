// The queue organ (shared/queue/worker.ts): relays, deliverers, firers and granters claim, keep and settle rows of
// their tables while time passes. Each defines what its work on a row is.
import type { Step } from "./explore.ts";
import { finish, giveBack, goesBack, isUsedUp, join, joinable, nextOfEachKey } from "./hand.ts";
import type { LeasedCalls } from "./leased_rows.ts";
import type { Habits } from "./model.ts";
import {
  nameOf,
  withCrash,
  withFault,
  withFlight,
  withHeld,
  withRow,
  withTables,
} from "./changes.ts";
import { changesWithoutLease, claimsWrongly, isUnfinished } from "./rules.ts";
import {
  events,
  type Held,
  type LeasedTables,
  type Link,
  type Outcome,
  type State,
  type Work,
  type Worker,
} from "./state.ts";

export interface Side<Tables> {
  name: "relay" | "deliverer" | "firer" | "granter" | "worker";
  work: Work<Tables>;
  calls: LeasedCalls<Tables>;
  habits: Habits;
  mayClaim(worker: Worker): boolean;
  crashed: Link | null; // what it is then
  put(work: Work<Tables>): State;
}

// The next row of a key in the hands of a worker.
export interface Turn {
  row: Held;
  name: string;
  who: string; // works on it
  ends(outcome: Outcome): State;
}

export async function workerSteps<Tables extends LeasedTables>(
  side: Side<Tables>,
  faultsLeft: number,
): Promise<Step<State>[]> {
  const steps: Step<State>[] = [];
  for (const [at, worker] of side.work.workers.entries()) {
    const who = `${side.name} ${nameOf(at)}`;
    if (worker.held.length + worker.flight.length === 0) {
      if (faultsLeft > 0 && side.crashed && worker.link?.kind !== "gone") {
        steps.push(...crash(side, at, who));
      }
      if (side.mayClaim(worker)) steps.push(...await claimSteps(side, at, who));
      continue;
    }
    steps.push(...await settleSteps(side, at, who), ...await keepSteps(side, at, who));
    if (worker.flight.length > 0) steps.push(joinStep(side, at, who));
    else if (side.mayClaim(worker) && side.habits.claimsBeside) {
      steps.push(...await flightSteps(side, at, who));
    }
    if (faultsLeft > 0) steps.push(...crash(side, at, who));
  }
  return [...steps, ...timeSteps(side, faultsLeft)];
}

/** The worker works on the next row of each key, or gives it up. */
export function workSteps<Tables>(
  { name: side, work, habits, put }: Side<Tables>,
  at: number,
  worksOn: (turn: Turn) => Step<State>[],
): Step<State>[] {
  const { held } = work.workers[at] as Worker;
  const who = `${side} ${nameOf(at)}`;
  return nextOfEachKey(held, habits.awaitsFailures).flatMap((row) => {
    const name = namesOf([row]);
    const ends = (outcome: Outcome) => put(withHeld(work, at, finish(held, row, outcome)));
    if (!isUsedUp(row)) return worksOn({ row, name, who, ends });
    return [{ label: `${who} gives ${name} up`, next: ends({ kind: "failed", attempted: false }) }];
  });
}

// Alone, or while another session has locked one of the rows.
async function claimSteps<Tables extends LeasedTables>(
  { work, calls, put }: Side<Tables>,
  at: number,
  who: string,
): Promise<Step<State>[]> {
  const { tables, workers } = work;
  const unfinished = tables.rows.flatMap((row, event) => row && isUnfinished(row) ? [event] : []);
  if (unfinished.length === 0) return [];
  const steps: Step<State>[] = [];
  const others = workers.length > 1 && unfinished.length > 1 ? unfinished : [];
  for (const limit of unfinished.length > 1 ? [unfinished.length, 1] : [1]) {
    for (const locked of [undefined, ...others]) {
      const changed = await calls.claim(tables, { limit, joins: [], locked });
      if (changed.returned.length === 0) continue;
      const held = changed.returned;
      const besides = locked === undefined ? "" : `, while ${events[locked]?.name} is locked`;
      steps.push({
        label: `${who} claims ${namesOf(held)}${besides}`,
        next: put(withHeld(withTables(work, changed), at, held)),
        breaks: claimsWrongly(changed.returned, tables, changed.tables),
      });
    }
  }
  return steps;
}

// A claim beside rows in hand. What it has leased joins the lines only with its answer.
async function flightSteps<Tables extends LeasedTables>(
  { work, calls, put }: Side<Tables>,
  at: number,
  who: string,
): Promise<Step<State>[]> {
  const { tables, workers } = work;
  const { held } = workers[at] as Worker;
  const others = tables.rows.some((row, event) =>
    row && isUnfinished(row) && !held.some((one) => one.event === event && one.leased)
  );
  const ranOut = held.some(({ event, leased }) => leased && tables.rows[event]?.lease === "over");
  if (!others || ranOut) return []; // first it extends its leases
  const joins = joinable(held).map(({ event }) => event);
  const changed = await calls.claim(tables, { limit: tables.rows.length, joins });
  if (changed.returned.length === 0) return [];
  return [{
    label: `${who} claims ${namesOf(changed.returned)} beside what it has in hand`,
    next: put(withFlight(withTables(work, changed), at, changed.returned)),
    breaks: claimsWrongly(changed.returned, tables, changed.tables),
  }];
}

function joinStep<Tables>({ work, put }: Side<Tables>, at: number, who: string): Step<State> {
  const { held, flight } = work.workers[at] as Worker;
  const next = put(withFlight(withHeld(work, at, join(held, flight)), at, []));
  return { label: `${who} adds ${namesOf(flight)} to its lines`, next };
}

function namesOf(held: Held[]): string {
  return held.map(({ event }) => events[event]?.name).join(" and ");
}

async function settleSteps<Tables extends LeasedTables>(
  { work, calls, habits, put }: Side<Tables>,
  at: number,
  who: string,
): Promise<Step<State>[]> {
  const { held, flight } = work.workers[at] as Worker;
  const steps: Step<State>[] = [];
  for (const row of held) {
    if (!row.outcome || row.outcome.kind === "forgotten") continue;
    const changed = await calls.settle(work.tables, row);
    const others = held.filter((other) => other !== row);
    const failedInVain = row.outcome.kind === "failed" && !row.leased;
    const rest = failedInVain ? giveBack(others, row) : others;
    const blocks = failedInVain || goesBack(row.outcome);
    const claimed = blocks && habits.numbersClaims ? giveBack(flight, row) : flight;
    const late = row.leased ? "" : ", its lease lost,";
    steps.push({
      label: `${who}${late} settles ${events[row.event]?.name} as ${row.outcome.kind}`,
      next: put(withTables(withFlight(withHeld(work, at, rest), at, claimed), changed)),
      breaks: changesWithoutLease([row], work.tables, changed.tables),
    });
  }
  return steps;
}

// The heartbeat.
async function keepSteps<Tables extends LeasedTables>(
  { work, calls, habits, put }: Side<Tables>,
  at: number,
  who: string,
): Promise<Step<State>[]> {
  const { held } = work.workers[at] as Worker;
  const ranOut = ({ event }: Held) => work.tables.rows[event]?.lease === "over";
  if (!held.some((row) => !row.leased || ranOut(row))) return [];
  const changed = await calls.keep(work.tables, held);
  const kept = new Set(changed.returned);
  // A row that has lost its lease is dropped when its turn comes.
  const rest = nextOfEachKey(held, habits.awaitsFailures).reduce((hand, row) => {
    if (kept.has(row.event)) return hand;
    if (habits.blocksAfterLoss) return finish(hand, row, { kind: "released" });
    return hand.map((one) => one === row ? { ...one, outcome: { kind: "released" } } : one);
  }, held);
  return [{
    label: `${who} extends its leases`,
    next: put(withTables(withHeld(work, at, rest), changed)),
    breaks: changesWithoutLease(held, work.tables, changed.tables),
  }];
}

function crash<Tables>(
  { work, put, crashed }: Side<Tables>,
  at: number,
  who: string,
): Step<State>[] {
  const othersLive = work.workers.some(({ link }, other) => other !== at && link?.kind !== "gone");
  if (crashed?.kind === "gone" && !othersLive) return [];
  const next = put(withCrash(work, at, crashed));
  return [{ label: `${who} crashes`, next: withFault(next) }];
}

// If a lease expires while a worker still uses it, the worker was too slow, which is a fault.
function timeSteps<Tables extends LeasedTables>(
  { name: side, work, put }: Side<Tables>,
  faultsLeft: number,
): Step<State>[] {
  const holderOf = (event: number) =>
    work.workers.findIndex(({ held, flight }) =>
      [...held, ...flight].some((row) => row.event === event && row.leased)
    );
  return work.tables.rows.flatMap((row, event) => {
    const name = events[event]?.name;
    if (row?.waits && !("awaitsPredecessor" in row && row.awaitsPredecessor)) {
      return [{
        label: `the retry of ${name} comes due`,
        next: put(withRow(work, event, { waits: false })),
      }];
    }
    if (row?.lease !== "runs") return [];
    const next = put(withRow(work, event, { lease: "over" }));
    const holder = holderOf(event);
    if (holder < 0) return [{ label: `the lease of ${name} expires`, next }];
    const label = `${side} ${nameOf(holder)} is too slow for its lease of ${name}`;
    return faultsLeft > 0 ? [{ label, next: withFault(next) }] : [];
  });
}
