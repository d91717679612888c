// The same as checker_test.ts for points and reservations.
import { type Harm, testHarms } from "./harms.ts";
import { first } from "./sound_evidence.ts";

const harms: Harm[] = [
  [
    "a reservation acted before its time",
    /^7\. Nothing acts/,
    ({ tables }) =>
      first(tables.audit, ({ request_id }) => request_id === "reservation:right").occurred_at -= 2,
  ],
  [
    "points of a reservation came before its time",
    /^7\. Nothing acts/,
    ({ tables }) => first(tables.transactions).created_at -= 2,
  ],
  [
    "a reservation is forgotten",
    /^8\. A reservation ends/,
    ({ tables }) => first(tables.reservations).status = "PROCESSING",
  ],
  [
    "an outage made a reservation fail",
    /FAILED but the notifications/,
    ({ tables }) => first(tables.reservations).status = "FAILED",
  ],
  [
    "an outage used up an attempt of a reservation",
    /^8\. No fault uses up/,
    ({ tables }) => first(tables.reservations).failures++,
  ],
  [
    "a reservation is DONE without its transaction",
    /^8\. A reservation ends/,
    ({ tables }) => first(tables.transactions).reservation_id = null,
  ],
  [
    "a reservation acted twice",
    /^8\. A reservation ends/,
    ({ tables }) => tables.transactions.push({ ...first(tables.transactions), id: "other" }),
  ],
  [
    "a cancelled reservation acted",
    /^8\. A transaction of a reservation/,
    ({ tables }) =>
      tables.transactions.push({
        ...first(tables.transactions),
        id: "other",
        reservation_id: "cancelled",
      }),
  ],
  [
    "the scheduled change of a right is missing",
    /^8\. A reservation ends/,
    ({ tables }) =>
      first(tables.audit, ({ request_id }) => request_id === "reservation:right").request_id = "no",
  ],
  [
    "the refused change of a right was made",
    /^8\. A reservation ends/,
    ({ tables }) => first(tables.audit).request_id = "reservation:again",
  ],
  ["a balance is no sum", /^9\. A balance/, ({ tables }) => first(tables.balances).balance++],
  [
    "a balance was negative",
    /^9\. A balance/,
    ({ tables }) => {
      const [one, two] = [first(tables.transactions), first(tables.transactions.slice(1))];
      [one.point_amount, two.point_amount] = [-3, 5];
      one.balance_after = -3;
    },
  ],
  [
    "a transaction has no event",
    /^9\. Each version/,
    ({ tables }) =>
      tables.events = tables.events.filter(({ stock_keeping_unit }) =>
        !stock_keeping_unit.startsWith("points:")
      ),
  ],
  [
    "an event belongs to no transaction",
    /^9\. Each version/,
    ({ tables }) => first(tables.events).stock_keeping_unit = "points:other",
  ],
  [
    "an accepted reservation is missing",
    /^6\. An acknowledged reservation/,
    ({ tables }) => tables.reservations.shift(),
  ],
  [
    "a reservation is of another time",
    /^6\. An acknowledged reservation/,
    ({ tables }) => first(tables.reservations).execute_at++,
  ],
  [
    "a refused request left a reservation",
    /leaves nothing but its stored refusal/,
    ({ tables }) => first(tables.reservations).idempotency_key = "key-refused",
  ],
  [
    "a cancelled reservation is done all the same",
    /^10\. /,
    ({ tables }) => first(tables.reservations, ({ id }) => id === "cancelled").status = "DONE",
  ],
  [
    "a cancel was refused although nothing was done",
    /^10\. /,
    ({ tables }) => first(tables.reservations, ({ id }) => id === "points").status = "CANCELLED",
  ],
];

testHarms(harms);
