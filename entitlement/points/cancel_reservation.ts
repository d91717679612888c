import { type Decision, refusal } from "@kenri/shared/commands/answer.ts";
import type { Command } from "@kenri/shared/commands/command.ts";
import type { CommandRoute, Sender } from "@kenri/shared/commands/route.ts";
import { pathPart } from "@kenri/shared/http/route.ts";
import { query, type Transaction, utc } from "@kenri/shared/postgres/postgres.ts";
import { sql } from "@kenri/shared/postgres/sql.ts";
import { uuidPattern } from "@kenri/shared/process/uuid.ts";
import { statusOfCode } from "../errors.ts";
import { countCommand } from "../metrics.ts";
import {
  type Family,
  noReservation,
  type Reservation,
  reservationColumns,
  reservationPath,
  shown,
  withoutReservation,
} from "./reservation.ts";

// A reservation is cancelled while it is PENDING: the row decides, so no key is needed, and a repeated
// request finds the row as the first one left it.

export interface Cancel extends Sender {
  id: string;
  kinds: string[];
}

interface Situation {
  now: string;
  found: Reservation | undefined; // of this caller
}

interface Effect {
  kind: "cancelled";
  id: string;
  at: string;
}

export function cancelRoute(
  { path, tag, noun, operations, kinds, write, schema, example }: Family,
): CommandRoute<undefined, Cancel> {
  const cancelled = { status: "CANCELLED", done_at: "2026-01-01T12:00:00.000000Z" };
  return {
    route: {
      method: "delete",
      path: `${path}/{reservation_id}`,
      scope: write,
      operationId: `cancel${operations}`,
      tags: [tag],
      summary: `Cancel a reservation of ${noun}`,
      description:
        "Possible while the reservation is PENDING. If it becomes due at the same moment, it is " +
        "either cancelled or carried out, never both. A repeated request gets the same answer.",
      request: { params: reservationPath },
      responses: {
        200: {
          description: "The reservation, CANCELLED",
          content: {
            "application/json": {
              schema,
              example: { ...example, ...cancelled, attempt_count: 0, last_error: null },
            },
          },
        },
        ...withoutReservation,
      },
    },
    refusals: {
      description: "The reservation is being carried out, or has ended in another way",
      messages: { RESERVATION_STATE_CONFLICT: "already DONE" },
    },
    toInput: (_, sender, req) => ({ ...sender, kinds, id: pathPart(req, "reservation_id") }),
    count: (result) => countCommand(kinds.includes("POINTS") ? "POINTS_CANCEL" : "CANCEL", result),
  };
}

export const cancelCommand: Command<Cancel, Situation, Effect> = {
  name: "cancellations",
  answerTtlMs: 0, // none is stored
  identityOf: () => undefined,
  locksOf: ({ id }) => [JSON.stringify(["reservation", id, "cancel"])],
  find: findReservations,
  decide,
  apply: { cancelled: markCancelled },
};

function decide({ id }: Cancel, { now, found }: Situation): Decision<Effect> {
  if (!found) return { answer: notFound, effects: [] };
  if (found.status === "CANCELLED") return { answer: cancelledAs(found), effects: [] };
  if (found.status !== "PENDING") {
    const code = "RESERVATION_STATE_CONFLICT";
    const answer = refusal(statusOfCode, "state_conflict", code, `already ${found.status}`);
    return { answer, effects: [] };
  }
  return {
    answer: cancelledAs({ ...found, status: "CANCELLED", done_at: now }),
    effects: [{ kind: "cancelled", id, at: now }],
  };
}

const notFound = refusal(statusOfCode, "state_conflict", "NOT_FOUND", noReservation);

function cancelledAs(reservation: Reservation) {
  const body = JSON.stringify(shown(reservation));
  return { status: 200, body, outcome: "applied" as const };
}

// Locked, because a claim takes no lock but that of the row.
async function findReservations(tx: Transaction, cancels: Cancel[]): Promise<Situation[]> {
  const ids = cancels.map(({ id }) => id).filter((id) => uuidPattern.test(id));
  const rows = await query<Reservation & { caller: string; now: string }>(
    tx,
    sql`
    select ${reservationColumns}, caller,
      ${utc(sql`clock_timestamp()`)} as now
    from point_reservations
    where id = any(${ids}::uuid[])
    order by id
    for update`,
  );
  const byId = new Map(rows.map((row) => [row.id, row]));
  return cancels.map(({ id, caller, kinds }) => {
    const row = byId.get(id.toLowerCase());
    const found = row?.caller === caller && kinds.includes(row.kind) ? row : undefined;
    return { now: row?.now ?? "", found };
  });
}

async function markCancelled(tx: Transaction, effects: Effect[]): Promise<void> {
  await query(
    tx,
    sql`
    update point_reservations reservation
    set status = 'CANCELLED',
      done_at = cancelled.at,
      updated_at = cancelled.at
    from unnest(
      ${effects.map(({ id }) => id)}::uuid[],
      ${effects.map(({ at }) => at)}::timestamptz[]
    ) as cancelled (id, at)
    where reservation.id = cancelled.id`,
  );
}
