import type { Answer } from "@kenri/shared/commands/answer.ts";
import { commandBatch } from "@kenri/shared/commands/command.ts";
import type { OutboxRow } from "@kenri/shared/outbox/outbox_table.ts";
import { type Database, isUnavailable } from "@kenri/shared/postgres/postgres.ts";
import type { Log } from "@kenri/shared/process/log.ts";
import { reasonOf } from "@kenri/shared/process/reason.ts";
import type { Handover } from "@kenri/shared/queue/handover.ts";
import type { Job, Outcome } from "@kenri/shared/queue/job.ts";
import { Worker } from "@kenri/shared/queue/worker.ts";
import { secondsSince } from "@kenri/shared/queue/worker_report.ts";
import type { WorkerConfig } from "@kenri/shared/process/service_settings.ts";
import { changeCommand, type CommitOptions } from "../change_entitlement.ts";
import type { Action, Change } from "../entitlement.ts";
import { lateness } from "../metrics.ts";
import { pointsCommand, type PointsOptions } from "./change_points.ts";
import { reservationKey } from "./outside_key.ts";
import { limitReached, type PointsChange } from "./points.ts";
import { type CarriedOut, leaseLost, type ReservationRow, reservations } from "./reservations.ts";

// Carries out what is due: each reservation becomes the same command as a request. Its effects and
// DONE are one commit, guarded by the token of the claim.

export interface CarryOutParts {
  database: Database;
  toCarryOut: Handover<ReservationRow>;
  toRelay: Handover<OutboxRow>;
  log: Log;
  abandon: AbortSignal;
}

export interface CarryOutOptions {
  commit: CommitOptions;
  points: PointsOptions;
  reservations: WorkerConfig;
}

// Rows of a worker need no lock for a key, so a commit may have twice as many of them as of requests
// and takes no more locks. How many wait is limited by what the worker has in hand.
const limits = { inputsPerCommit: 256, maxWaiting: Infinity, behindRequests: true };

export async function carryOutReservations(
  parts: CarryOutParts,
  options: CarryOutOptions,
  stop: AbortSignal,
): Promise<void> {
  const worker = new Worker(carryingOut(parts, options), parts.log, parts.abandon);
  await worker.run(parts.toCarryOut, stop);
}

export function carryingOut(
  { database, toRelay }: Pick<CarryOutParts, "database" | "toRelay">,
  options: CarryOutOptions,
): Job<ReservationRow, CarriedOut> {
  const { idempotencyTtlMs } = options.commit;
  const points = { ...pointsCommand({ ...options.points, idempotencyTtlMs }), name: "due_points" };
  const changes = { ...changeCommand(options.commit), name: "due_changes" };
  const duePoints = commandBatch(database, points, toRelay, limits);
  const dueChanges = commandBatch(database, changes, toRelay, limits);
  const job = reservations.jobOn(database, options.reservations);
  return {
    name: "reservations",
    ...options.reservations,
    ...job,
    work: async (row) => {
      try {
        const { kind } = row.content;
        const answer = kind === "POINTS"
          ? await duePoints.add(grantOf(row))
          : await dueChanges.add(changeOf(row, kind));
        const outcome = outcomeOf(answer, row);
        if (outcome.kind === "done") lateness.observe(lateSecondsOf(row));
        return outcome;
      } catch (error) {
        if (isUnavailable(error)) return { kind: "unavailable", error: reasonOf(error) };
        throw error;
      }
    },
    // The commit has marked those that are done.
    settle: async (settled) => {
      const owned = await job.settle(settled.filter(({ kind }) => kind !== "done"));
      for (const { row, kind } of settled) if (kind === "done") owned.add(row.id);
      return owned;
    },
    stepOf: () => ({ name: "carry out", kind: "internal" }),
    traceparentOf: ({ content }) => content.traceparent,
    about: ({ id, content }) => ({ reservation_id: id, user_id: content.user_id }),
  };
}

// Points may be given without a reason, but a transaction has one.
function grantOf(row: ReservationRow): PointsChange {
  const { user_id, unit, point_amount, source, source_id } = row.content;
  return {
    kind: "GRANT",
    userId: user_id,
    unit: unit ?? "",
    pointAmount: point_amount ?? 0,
    source: source ?? "reservation",
    sourceId: source_id ?? row.id,
    ...senderOf(row),
  };
}

function changeOf(row: ReservationRow, action: Action): Change {
  const { user_id, stock_keeping_unit, source, source_id } = row.content;
  return {
    action,
    userId: user_id,
    stockKeepingUnit: stock_keeping_unit ?? "",
    reason: source ?? "",
    purchaseId: source_id ?? "",
    ...senderOf(row),
  };
}

function senderOf(row: ReservationRow) {
  const { caller, trace_id, traceparent } = row.content;
  const idempotencyKey = reservationKey(row.id);
  return { caller, idempotencyKey, traceId: trace_id, traceparent, reservation: row };
}

// One that is accepted when its time has passed is late only since then.
function lateSecondsOf({ content, claimedAt }: ReservationRow): number {
  return content.late_seconds + secondsSince(claimedAt);
}

// The refusal of a right is an outcome like any other. Points are refused only over the limit of the
// balance, and an operator decides what becomes of the reservation.
function outcomeOf(answer: Answer, { content }: ReservationRow): Outcome<CarriedOut> {
  if (answer === leaseLost) return { kind: "later", delayMs: 0 }; // settles nothing
  if (content.kind === "POINTS" && answer.outcome !== "applied") {
    return { kind: "failed", error: limitReached };
  }
  return { kind: "done", result: {} };
}
