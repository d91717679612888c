// One invariant with its counts, and the indexes that all of them use to search the tables.
import type { AllTables } from "./tables.ts";

export interface Invariant {
  statement: string;
  checked: number;
  violations: number;
  examples: string[]; // the first few violations
}

const maxExamples = 5;

export function invariant<Item>(
  statement: string,
  items: Item[],
  holds: (item: Item) => boolean,
): Invariant {
  const broken = items.filter((item) => !holds(item));
  const examples = broken.slice(0, maxExamples).map((item) => JSON.stringify(item));
  return { statement, checked: items.length, violations: broken.length, examples };
}

type Rows<Table extends keyof AllTables> = Map<string, AllTables[Table]>;

/** The tables with their indexes. */
export interface IndexedTables extends Omit<AllTables, "processed"> {
  eventsOf: Rows<"events">; // of a change
  auditOf: Rows<"audit">;
  auditOfKey: Rows<"audit">;
  auditOfLine: Rows<"audit">;
  answerOf: Map<string, AllTables["answers"][0]>;
  processed: Set<string>;
  notificationsOf: Rows<"notifications">; // of an event
  notificationsOfChange: Rows<"notifications">;
  deadLettersOf: Rows<"deadLetters">; // of a notification
  transactionsOf: Rows<"transactions">; // of a change
  transactionsOfLine: Rows<"transactions">;
  transactionsOfReservation: Rows<"transactions">;
  reservationOf: Map<string, AllTables["reservations"][0]>; // by its id
  reservationsOfKey: Rows<"reservations">;
  orderOf: Map<string, AllTables["orders"][0]>; // by its id
  ordersOfKey: Rows<"orders">;
  ledgerOf: Map<string, AllTables["ledger"][0]>; // by its key
}

export function indexed(tables: AllTables): IndexedTables {
  return {
    ...tables,
    eventsOf: Map.groupBy(tables.events, changeOf),
    auditOf: Map.groupBy(tables.audit, changeOf),
    auditOfKey: Map.groupBy(tables.audit, ({ request_id }) => request_id),
    auditOfLine: Map.groupBy(tables.audit, lineOf),
    answerOf: new Map(tables.answers.map((row) => [row.idem_key, row])),
    processed: new Set(tables.processed),
    notificationsOf: Map.groupBy(tables.notifications, ({ event_id }) => event_id),
    notificationsOfChange: Map.groupBy(tables.notifications, changeOf),
    deadLettersOf: Map.groupBy(tables.deadLetters, ({ notification_id }) => notification_id),
    transactionsOf: Map.groupBy(tables.transactions, changeOf),
    transactionsOfLine: Map.groupBy(tables.transactions, lineOf),
    transactionsOfReservation: Map.groupBy(
      tables.transactions,
      ({ reservation_id }) => reservation_id ?? "",
    ),
    reservationOf: new Map(tables.reservations.map((row) => [row.id, row])),
    reservationsOfKey: Map.groupBy(tables.reservations, ({ idempotency_key }) => idempotency_key),
    orderOf: new Map(tables.orders.map((row) => [row.id, row])),
    ordersOfKey: Map.groupBy(tables.orders, ({ idempotency_key }) => idempotency_key),
    ledgerOf: new Map(tables.ledger.map((row) => [row.idempotency_key, row])),
  };
}

interface Line {
  user_id: string;
  stock_keeping_unit: string;
}

export function lineOf({ user_id, stock_keeping_unit }: Line): string {
  return JSON.stringify([user_id, stock_keeping_unit]);
}

export function changeOf(
  { user_id, stock_keeping_unit, version }: Line & { version: number },
): string {
  return JSON.stringify([user_id, stock_keeping_unit, version]);
}
