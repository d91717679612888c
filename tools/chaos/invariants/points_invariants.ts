// Reservations act once and at their time, and balances are the sums of their transactions.
import type { ReserveRequest } from "../../load/any_request.ts";
import type { Answered } from "./invariants.ts";
import { changeOf, type IndexedTables, type Invariant, invariant, lineOf } from "./invariant.ts";

type Reservation = IndexedTables["reservations"][0];

/** The key under which a due reservation is carried out. */
const keyOf = (id: string) => `reservation:${id}`;

export function nothingActsEarly(
  { reservations, auditOfKey, transactionsOfReservation }: IndexedTables,
): Invariant {
  return invariant(
    "7. Nothing acts before its time by the clock of the database",
    reservations.filter(({ id }) => auditOfKey.has(keyOf(id)) || transactionsOfReservation.has(id)),
    ({ id, execute_at }) =>
      [
        ...(auditOfKey.get(keyOf(id)) ?? []).map(({ occurred_at }) => occurred_at),
        ...(transactionsOfReservation.get(id) ?? []).map(({ created_at }) => created_at),
      ].every((time) => time >= execute_at),
  );
}

export function reservationsEnd(all: IndexedTables): Invariant {
  return invariant(
    "8. A reservation ends DONE, FAILED or CANCELLED; it has acted once if it is DONE, and otherwise never",
    all.reservations,
    (row) => {
      const entries = all.auditOfKey.get(keyOf(row.id)) ?? [];
      const transactions = all.transactionsOfReservation.get(row.id) ?? [];
      if (row.status === "DONE") {
        return row.kind === "POINTS" ? pointsWereAdded(row, all) : rightWasChanged(row, all);
      }
      const hasEnded = row.status === "FAILED" || row.status === "CANCELLED";
      return hasEnded && entries.length === 0 && transactions.length === 0;
    },
  );
}

function pointsWereAdded(row: Reservation, all: IndexedTables): boolean {
  const [transaction, ...more] = all.transactionsOfReservation.get(row.id) ?? [];
  return more.length === 0 && all.auditOfKey.get(keyOf(row.id))?.length === 1 &&
    transaction !== undefined && transaction.id === row.transaction_id &&
    transaction.point_amount === row.point_amount && lineOf(transaction) === lineOf(row) &&
    transaction.idempotency_key.split(" ").at(-1) === keyOf(row.id);
}

/** A reservation whose change was refused is DONE, too: its outcome is the refusal. */
function rightWasChanged(row: Reservation, all: IndexedTables): boolean {
  const [entry, ...more] = all.auditOfKey.get(keyOf(row.id)) ?? [];
  if (all.transactionsOfReservation.has(row.id) || more.length > 0) return false;
  return row.answered === 200
    ? entry?.action === row.kind && lineOf(entry) === lineOf(row)
    : row.answered === 409 && entry === undefined;
}

export function transactionsAreOfReservations(
  { transactions, reservationOf }: IndexedTables,
): Invariant {
  return invariant(
    "8. A transaction of a reservation belongs to one that is DONE by it",
    transactions.filter(({ reservation_id }) => reservation_id !== null),
    ({ id, reservation_id }) => reservationOf.get(reservation_id ?? "")?.transaction_id === id,
  );
}

export function balancesAddUp(
  { balances, transactions, transactionsOfLine }: IndexedTables,
): Invariant {
  const balanceOf = new Map(balances.map((row) => [lineOf(row), row]));
  return invariant(
    "9. A balance is the sum of its transactions, its version is their number, and it was never negative",
    [...new Set([...balances, ...transactions].map(lineOf))],
    (line) => {
      const history = transactionsOfLine.get(line)?.toSorted((a, b) => a.version - b.version) ?? [];
      let sum = 0;
      const follow = history.every(({ version, point_amount, balance_after }, i) => {
        sum += point_amount;
        return version === i + 1 && balance_after === sum && sum >= 0;
      });
      const root = balanceOf.get(line);
      return follow && root?.balance === sum && root.version === history.length;
    },
  );
}

const isOfPoints = ({ stock_keeping_unit }: { stock_keeping_unit: string }) =>
  stock_keeping_unit.startsWith("points:");

export function transactionsAreRecorded(
  { transactions, events, audit, transactionsOf, eventsOf, auditOf }: IndexedTables,
): Invariant {
  const rows = [...transactions, ...events.filter(isOfPoints), ...audit.filter(isOfPoints)];
  return invariant(
    "9. Each version of a balance has one transaction, one event with its id and one audit row",
    [...new Set(rows.map(changeOf))],
    (change) => {
      const [transaction, ...more] = transactionsOf.get(change) ?? [];
      const [event, ...moreEvents] = eventsOf.get(change) ?? [];
      return more.length + moreEvents.length === 0 && auditOf.get(change)?.length === 1 &&
        transaction !== undefined && transaction.id === event?.event_id;
    },
  );
}

export function reservationsAreKept(
  { reservationsOfKey }: IndexedTables,
  answered: Answered[],
): Invariant {
  return invariant(
    "6. An acknowledged reservation exists, once and as it was asked for",
    answered.filter(({ request, answer }) => request.action !== "ORDER" && answer.status === 202),
    ({ request, answer }) => {
      const [row, ...more] = reservationsOfKey.get(request.key) ?? [];
      return request.action === "RESERVE" && more.length === 0 && row !== undefined &&
        row.id === JSON.parse(answer.body).reservation_id && isAsAsked(row, request);
    },
  );
}

function isAsAsked(row: Reservation, { user, at, what }: ReserveRequest): boolean {
  const [kind, item, amount] = "unit" in what
    ? ["POINTS", `points:${what.unit}`, what.amount]
    : [what.change, what.sku, null];
  return row.user_id === user && row.execute_at === at * 1_000 && row.kind === kind &&
    row.stock_keeping_unit === item && row.point_amount === amount;
}

export function cancelsWinOrLose(
  { reservationOf }: IndexedTables,
  answered: Answered[],
): Invariant {
  return invariant(
    "10. A reservation whose cancel was acknowledged is CANCELLED, one whose cancel was refused is as the refusal says",
    answered.filter(({ request }) => request.action === "CANCEL"),
    ({ request, answer }) => {
      const { status } = reservationOf.get("reservation" in request ? request.reservation : "") ??
        {};
      if (answer.status === 200) return status === "CANCELLED";
      const { code, message } = JSON.parse(answer.body);
      // What was being carried out may have been returned, and then been cancelled by a repeated request.
      return code === "RESERVATION_STATE_CONFLICT" && status !== undefined &&
        (message === "already PROCESSING" || message === `already ${status}`);
    },
  );
}
