import { type Call, type OwnCommand, text, wholeNumber } from "@kenri/shared/ops/command.ts";
import type { Figures } from "@kenri/shared/operators/looks.ts";
import { type NoFields, reads } from "@kenri/shared/ops/service_api.ts";
import { age, list, table, time } from "@kenri/shared/ops/text.ts";
import type { OutboxStatus } from "../status.ts";
import type { PointsOfUser, PointsQuery } from "./points_of_user.ts";
import type { ReservationLook } from "./reservations.ts";
import type { Upcoming, UpcomingQuery } from "./upcoming.ts";

// The commands of `ops` for points and reservations. `points late` is the command of their queue.

const statusRoute = reads<NoFields, OutboxStatus>("status");
const upcomingRoute = reads<UpcomingQuery, Upcoming>("points/upcoming");
const userRoute = reads<PointsQuery, PointsOfUser>("points/user");

type ReservationStatus = OutboxStatus["reservations"];

const countedAtMost = 10_000;

export function reservationFigures({ upcoming, next_due_at }: ReservationStatus): Figures {
  return {
    "reservations to come": upcoming < countedAtMost ? upcoming : `${upcoming} or more`,
    "next reservation due": next_due_at === null ? "none" : time(next_due_at),
  };
}

export const points: OwnCommand = {
  usage: "points [--user USER] [--unit UNIT] [--limit N]",
  words: 0,
  summary: "Show how reservations stand, or the points of a user",
  options: { user: { type: "string" }, unit: { type: "string" }, limit: { type: "string" } },
  help: `
  --user USER     the balances of a user, what is reserved for them, and their last transactions
  --unit UNIT     only the transactions in this unit
  --limit N       at most N transactions; default: 20

Without --user: how many reservations are due and wait, how many are to come, and how many failed for
good. Exit code 1 if one is due for over a second, or if one failed for good.`,
  run: async (service, call) => {
    const user_id = text(call.values["user"]);
    if (user_id !== undefined) {
      return ofUser(await service.ask(userRoute, { ...fieldsOf(call), user_id }));
    }
    const { reservations, errors } = await service.ask(statusRoute, {});
    const dead = errors.filter(({ layer }) => layer === "reservation");
    const failed = dead.reduce((sum, { count }) => sum + count, 0);
    const { waiting, oldest_waiting_seconds: seconds } = reservations;
    const isLate = seconds !== null && seconds > 1;
    return {
      problem: isLate || failed > 0,
      json: { ...reservations, failed },
      text: [
        list({
          "due reservations waiting": waiting === 0
            ? "0"
            : `${waiting}, the oldest for ${age(seconds)}`,
          ...reservationFigures(reservations),
          "failed for good": failed,
        }),
        "",
        ...(isLate ? ["! reservations are late: ops points late"] : []),
        ...(failed > 0
          ? ["! reservations failed for good: ops dead list --layer reservation"]
          : []),
        ...(isLate || failed > 0 ? [] : ["All is well."]),
      ].join("\n"),
    };
  },
};

function fieldsOf(call: Call): Pick<PointsQuery, "unit" | "limit"> {
  return { unit: text(call.values["unit"]), limit: wholeNumber(call, "limit", 200) ?? 20 };
}

function ofUser(user: PointsOfUser) {
  const { balances, reservations, transactions, next_cursor } = user;
  const known = balances.length + reservations.length + transactions.length > 0;
  return {
    problem: !known,
    json: user,
    text: known
      ? [
        balances.length === 0 ? "No balance." : table(balances, {
          "UNIT": ({ unit }) => unit,
          "BALANCE": ({ balance }) => balance,
          "VERSION": ({ version }) => version,
          "CHANGED": ({ updated_at }) => time(updated_at),
        }),
        ...(reservations.length > 0 ? ["", reservationTable(reservations)] : []),
        ...(transactions.length > 0 ? ["", transactionTable(transactions)] : []),
        ...(next_cursor === undefined ? [] : ["… and more: use --limit"]),
      ].join("\n")
      : "This user has no points and no reservations.",
  };
}

function transactionTable(transactions: PointsOfUser["transactions"]): string {
  return table(transactions, {
    "TIME": ({ created_at }) => time(created_at),
    "EVENT_ID": ({ transaction_id }) => transaction_id,
    "POINTS": ({ point_amount, unit }) => `${point_amount > 0 ? "+" : ""}${point_amount} ${unit}`,
    "BALANCE": ({ balance_after }) => balance_after,
    "VERSION": ({ version }) => version,
    "REASON": ({ reason }) => reason,
    "SOURCE_ID": ({ source_id }) => source_id,
  });
}

export const pointsNext: OwnCommand = {
  usage: "points next [--limit N]",
  words: 0,
  summary: "List the reservations that are due next, also those that wait for another attempt",
  options: { limit: { type: "string" } },
  help: `
  --limit N       at most N; default: 20

A reservation with attempts has failed before and is tried again at DUE; LAST ERROR is the reason.
What is due already is in \`ops points late\`.`,
  async run(service, call) {
    const limit = wholeNumber(call, "limit", 200) ?? 20;
    const { reservations, next_cursor } = await service.ask(upcomingRoute, { limit });
    return {
      problem: false,
      json: { reservations },
      text: reservations.length === 0 ? "No reservation is to come." : [
        reservationTable(reservations),
        ...(next_cursor === undefined ? [] : ["… and more: use --limit"]),
      ].join("\n"),
    };
  },
};

function reservationTable(reservations: ReservationLook[]): string {
  return table(reservations, {
    "DUE": ({ due_at }) => time(due_at),
    "RESERVATION_ID": ({ reservation_id }) => reservation_id,
    "USER": ({ user_id }) => user_id,
    "WHAT": ({ kind, unit, point_amount, stock_keeping_unit }) =>
      kind === "POINTS" ? `+${point_amount} ${unit}` : `${kind} ${stock_keeping_unit}`,
    "STATUS": ({ status }) => status,
    "ATTEMPTS": ({ attempt_count }) => attempt_count,
    "LAST ERROR": ({ last_error }) => last_error,
  });
}
