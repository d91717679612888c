// Reservations and a balance of points, and the real functions that change them.
import { deadReservations } from "../../../entitlement/operators/dead_reservations.ts";
import type { DeadLetter } from "../../../shared/operators/dead_letters.ts";
import { newOperation } from "../../../shared/operators/operations.ts";
import { Wakeup } from "../../../shared/process/signals.ts";
import { cancelCommand } from "../../../entitlement/points/cancel_reservation.ts";
import { carryingOut } from "../../../entitlement/points/carry_out.ts";
import { pointsCommand } from "../../../entitlement/points/change_points.ts";
import { type ReservationContent, reservations } from "../../../entitlement/points/reservations.ts";
import { reserveCommand } from "../../../entitlement/points/reserve.ts";
import { commit } from "../../../shared/commands/command.ts";
import type { Database } from "../../../shared/postgres/postgres.ts";
import { Handover } from "../../../shared/queue/handover.ts";
import { asClaimed, idOf, type LeasedCalls, leasedCalls } from "./leased_rows.ts";
import { balance, pointsAccess } from "./points_tables.ts";
import {
  type Changed,
  type Circumstances,
  RealCalls,
  type Rewrite,
  unlessInterrupted,
  type View,
} from "./real_calls.ts";
import type { Event, Held, Points } from "./state.ts";

/** What a client asks for besides reservations; its name is also its key. */
export const requests = {
  grant: { kind: "GRANT", pointAmount: 1 },
  spend: { kind: "SPEND", pointAmount: 2 },
} as const;
export type RequestName = keyof typeof requests;

export interface PointsCalls extends LeasedCalls<Points> {
  real: RealCalls<Points>;
  /** The three return the status of the answer. */
  reserve(points: Points, event: Event, early: boolean): Promise<Changed<Points, number>>;
  cancel(points: Points, event: Event): Promise<Changed<Points, number>>;
  ask(points: Points, request: RequestName): Promise<Changed<Points, number>>;
  sendBack(points: Points, event: Event): Promise<Changed<Points, unknown>>;
  /** Returns the outcome for the worker; undefined if it was killed before DONE. */
  carryOut(
    points: Points,
    held: Held,
    happens: { killed?: boolean; meanwhile?: RequestName },
  ): Promise<Changed<Points, string | undefined>>;
}

const hourMs = 3_600_000;
const sender = { caller: "", traceId: "t", traceparent: null };
const content: ReservationContent = {
  ...{ kind: "POINTS", caller: "", user_id: balance.userId, unit: balance.unit, point_amount: 1 },
  ...{ stock_keeping_unit: null, source: null, source_id: null, trace_id: "t", traceparent: null },
  late_seconds: 0,
};
const options = {
  commit: { idempotencyTtlMs: hourMs },
  points: { ...balance, maxBalance: 1_000 },
  reservations: {
    ...{ worker: "model", leaseMs: hourMs, batchSize: 1, pollIntervalMs: 1_000, maxAttempts: 2 },
    backoff: { baseMs: 1, maxMs: 1, minMs: 1, jitterMin: 1, jitterMax: 1 },
  },
};
const change = pointsCommand({ ...options.points, idempotencyTtlMs: hourMs });
const reserve = reserveCommand({ idempotencyTtlMs: hourMs, pollIntervalMs: 1_000 });

export function pointsCalls(rewrite?: Rewrite): PointsCalls {
  const real = new RealCalls(pointsAccess, rewrite);
  const after = <Returned>(
    points: Points,
    what: string,
    call: (database: Database) => Promise<Returned>,
    circumstances: Circumstances & { view?: View<Points> } = {},
  ) => real.after(points, what, call, circumstances);
  return {
    real,
    ...leasedCalls(real, {
      claim: reservations.claim,
      keep: reservations.extend,
      settle: reservations.settle,
      resultAt: () => ({}),
    }, { ofClaims: onlyReservations, ofRow: onlyRow }),
    reserve: (points, event, early) =>
      after(points, `reserve ${event} ${early}`, (database) => {
        const executeAt = new Date(Date.now() + (early ? hourMs : -hourMs)).toISOString();
        const nothing = { stockKeepingUnit: null, source: null, sourceId: null };
        const asked = {
          kind: "POINTS" as const,
          ...balance,
          pointAmount: 1,
          ...nothing,
          executeAt,
        };
        return statusOf(commit(database, reserve, [{
          ...{ ...asked, ...sender, idempotencyKey: idOf(event) },
        }]));
      }),
    cancel: (points, event) =>
      after(points, `cancel ${event}`, (database) => {
        const cancel = { ...sender, idempotencyKey: "", id: idOf(event), kinds: ["POINTS"] };
        return statusOf(commit(database, cancelCommand, [cancel]));
      }, { view: onlyRow(event) }),
    ask: (points, name) =>
      after(points, `ask ${name}`, (database) => ask(database, name), { view: onlyBalance }),
    sendBack: (points, event) =>
      after(points, `send ${event} back`, (database) => {
        const dead = [{ id: idOf(event) }] as DeadLetter[];
        const operation = newOperation({ who: "ann", reason: "mended" });
        return deadReservations(database, new Wakeup()).sendBack(dead, operation);
      }, { view: onlyRow(event) }),
    carryOut: (points, held, { killed, meanwhile }) =>
      after(
        points,
        `carry ${held.event} ${held.leased} out ${meanwhile}`,
        async (database) => {
          const job = carryingOut({ database, toRelay: new Handover() }, options);
          const work = job.work(asClaimed(held, content)).then(
            ({ kind }): string => kind,
            (error) => error.name === "Interrupted" ? Promise.reject(error) : "retry",
          );
          return await unlessInterrupted(work);
        },
        {
          view: meanwhile ? rowBalanceAndAnswers(held.event) : rowAndBalance(held.event),
          ...killed ? { killedBefore: /set status = 'DONE'/ } : {},
          ...meanwhile
            ? { meanwhile: { before: /append_points/, call: (other) => ask(other, meanwhile) } }
            : {},
        },
      ),
  };
}

function ask(database: Database, name: RequestName): Promise<number> {
  const caused = { ...balance, source: "s", sourceId: "s" };
  const asked = { ...requests[name], ...caused, ...sender, idempotencyKey: name };
  return statusOf(commit(database, change, [asked]));
}

async function statusOf(
  written: Promise<{ result: { status: number }[] }>,
): Promise<number> {
  return (await written).result[0]?.status ?? 0;
}

const unread = /point_transactions|point_root|idempotency_keys/;

const onlyReservations: View<Points> = {
  of: ({ rows }) => ({ rows, transactions: [], roots: [], answers: [] }),
  unread,
};

const onlyRow = (event: Event): View<Points> => ({
  of: ({ rows }) => ({ rows: alone(rows, event), transactions: [], roots: [], answers: [] }),
  unread,
});

const rowAndBalance = (event: Event): View<Points> => ({
  of: (points) => ({ ...points, rows: alone(points.rows, event), answers: [] }),
  unread: /skip locked|idempotency_keys/,
});

const rowBalanceAndAnswers = (event: Event): View<Points> => ({
  of: (points) => ({ ...points, rows: alone(points.rows, event) }),
  unread: /skip locked/,
});

// Of the reservations a request asks only whether one has its key.
const onlyBalance: View<Points> = {
  of: (points) => ({ ...points, rows: points.rows.map(() => null) }),
  unread: /point_reservations row/,
};

function alone<Row>(rows: (Row | null)[], event: Event): (Row | null)[] {
  return rows.map((row, at) => at === event ? row : null);
}
