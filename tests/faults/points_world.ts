// Points and reservations of the quiet run whose tables invariants_test.ts damages, and the damage.
import assert from "node:assert/strict";
import type { Answered, SendRecord } from "../../tools/chaos/invariants/invariants.ts";
import type { Receipt } from "../../tools/chaos/invariants/order_invariants.ts";
import type { AllTables } from "../../tools/chaos/invariants/tables.ts";
import type { AnyRequest, ReserveRequest } from "../../tools/load/any_request.ts";
import type { Answer } from "../../tools/load/repeating_client.ts";

export interface World {
  tables: AllTables;
  answered: Answered[];
  sends: SendRecord[];
  received: Receipt[];
}

export interface Harm {
  to: number; // the number of the invariant in docs/reliability.md
  does(world: World): void;
}

/** Points and rights that come due, and a reservation that is cancelled. */
export async function reserveAndSpend(
  ask: (request: AnyRequest) => Promise<Answer>,
  untilDone: () => Promise<void>,
): Promise<void> {
  const named = (key: string) => ({ key, user: "ann", reason: "r", purchase: "p" });
  const gems = (amount: number) => ({ unit: "gems", amount });
  const pass = { change: "GRANT", sku: "pass" } as const;
  const reserve = async (key: string, what: ReserveRequest["what"], inMs = 0) => {
    const request = { action: "RESERVE", ...named(key), what, at: Date.now() + inMs } as const;
    const { status, body } = await ask(request);
    assert.equal(status, 202, body);
    return JSON.parse(body).reservation_id as string;
  };
  const cancel = (reservation: string) =>
    ask({ action: "CANCEL", key: "", user: "ann", reservation, isOfRight: false });
  const done = await reserve("points", gems(5));
  await reserve("right", pass);
  await reserve("right-again", pass);
  await untilDone();
  assert.equal((await ask({ action: "POINTS_TAKE", ...named("spend"), ...gems(3) })).status, 200);
  assert.equal((await ask({ action: "POINTS_TAKE", ...named("more"), ...gems(3) })).status, 409);
  assert.equal((await cancel(done)).status, 409);
  assert.equal((await cancel(await reserve("later", gems(1), 3_600_000))).status, 200);
}

export const harmsToPoints: Record<string, Harm> = {
  "a reservation acted before its time": {
    to: 7,
    does: ({ tables }) => first(tables.transactions).created_at -= 3_600e6,
  },
  "a right was changed before its time": {
    to: 7,
    does: ({ tables }) => rightEntry(tables).occurred_at -= 3_600e6,
  },
  "a reservation is forgotten": {
    to: 8,
    does: ({ tables }) => doneWithPoints(tables).status = "PROCESSING",
  },
  "a reservation is done by nothing": {
    to: 8,
    does: ({ tables }) => doneWithPoints(tables).transaction_id = "no",
  },
  "a reservation has two transactions": {
    to: 8,
    does: ({ tables }) => tables.transactions.push(first(tables.transactions)),
  },
  "the change of a right is missing": {
    to: 8,
    does: ({ tables }) => rightEntry(tables).request_id = "no",
  },
  "a right was changed although its reservation was refused": {
    to: 8,
    does: ({ tables }) => withOutcome(tables, 200).answered = 409,
  },
  "a balance is not the sum of its transactions": {
    to: 9,
    does: ({ tables }) => last(tables.balances).balance--,
  },
  "a balance misses a version": { to: 9, does: ({ tables }) => last(tables.balances).version++ },
  "a transaction is missing": { to: 9, does: ({ tables }) => void tables.transactions.pop() },
  "an event of points is of no transaction": {
    to: 9,
    does: ({ tables }) => last(tables.transactions).id = "no",
  },
  "a reservation is lost": { to: 6, does: ({ tables }) => void tables.reservations.pop() },
  "a reservation has another amount": {
    to: 6,
    does: ({ tables }) => doneWithPoints(tables).point_amount = 7,
  },
  "a cancelled reservation is done": {
    to: 10,
    does: ({ tables }) => cancelled(tables).status = "DONE",
  },
  "a reservation that was too late to cancel is pending": {
    to: 10,
    does: ({ tables }) => doneWithPoints(tables).status = "CANCELLED",
  },
  "a reservation that ended is leased": {
    to: 5,
    does: ({ tables }) => last(tables.reservations).leased = true,
  },
};

const doneWithPoints = ({ reservations }: AllTables) =>
  first(reservations.filter(({ kind, status }) => kind === "POINTS" && status === "DONE"));

const rightEntry = ({ audit }: AllTables) =>
  first(audit.filter(({ stock_keeping_unit }) => stock_keeping_unit === "pass"));

const cancelled = ({ reservations }: AllTables) =>
  first(reservations.filter(({ status }) => status === "CANCELLED"));

const withOutcome = ({ reservations }: AllTables, outcome: number) =>
  first(reservations.filter(({ answered }) => answered === outcome));

function first<Item>(items: Item[]): Item {
  return items[0] as Item;
}

export function last<Item>(items: Item[]): Item {
  return items.at(-1) as Item;
}
