// The same as checker_test.ts for orders, the ledger and receivers.
import assert from "node:assert/strict";
import { check } from "./checker.ts";
import type { Evidence } from "./evidence.ts";
import { type Harm, testHarms } from "./harms.ts";
import { first, soundEvidence } from "./sound_evidence.ts";

Deno.test("a fault of a receiver, a sender or the path between them explains what is received again", () => {
  for (const target of ["all", "sender-1", "notification-1 > sender-1", "notification-2"]) {
    const evidence = soundEvidence();
    evidence.log.sends.splice(2, 1); // the notification that was sent again
    first(evidence.injected).fault.target = target;
    assert.deepEqual(check(evidence).filter(({ violations }) => violations > 0), [], target);
  }
});

const ordersOf = ({ tables }: Evidence, version: number) =>
  tables.orders.filter((row) => row.version === version && row.endpoint_id === "all");

const harms: Harm[] = [
  [
    "an event has no order",
    /^11\. An event/,
    ({ tables }) => {
      tables.orders.shift();
      tables.ledger.shift();
    },
  ],
  [
    "an event has two orders",
    /^11\. An event/,
    ({ tables }) => tables.orders.push({ ...first(tables.orders), id: "other" }),
  ],
  [
    "an endpoint has an order of a type that it does not want",
    /^11\. An event/,
    ({ tables }) => {
      const other = "event-1:some";
      tables.orders.push({ ...first(tables.orders), id: "other", idempotency_key: other });
    },
  ],
  ["an accepted order is lost", /^11\. An acknowledged/, ({ tables }) => tables.orders.pop()],
  [
    "an order SUCCEEDED without the ledger",
    /^12\. An order/,
    ({ tables }) => tables.ledger.shift(),
  ],
  [
    "the ledger says SUCCEEDED of an order that goes on",
    /^12\. An order/,
    ({ tables }) => first(tables.orders).status = "FAILED",
  ],
  [
    "the ledger says FAILED of an order that SUCCEEDED",
    /^12\. An order/,
    ({ tables }) => first(tables.ledger).status = "FAILED",
  ],
  [
    "the ledger has another digest",
    /^12\. An order/,
    ({ tables }) => first(tables.ledger).request_digest = "other",
  ],
  [
    "a conflict has changed the ledger",
    /^12\. An order/,
    ({ tables }) =>
      Object.assign(first(tables.orders), { status: "ABORTED", reason: "IDEMPOTENCY_CONFLICT" }),
  ],
  [
    "the ledger has an entry of no order",
    /^12\. An entry/,
    ({ tables }) => tables.ledger.push({ ...first(tables.ledger), order_id: "no" }),
  ],
  [
    "a finished order still has a lease",
    /^5\. A worker/,
    ({ tables }) => first(tables.orders).leased = true,
  ],
  [
    "an order SUCCEEDED that no receiver got",
    /^13\. A receiver/,
    ({ received }) => received.splice(1, 1),
  ],
  [
    "an order SUCCEEDED that its receiver refused",
    /^13\. A receiver/,
    ({ received }) => first(received.slice(1)).status = 503,
  ],
  [
    "a receiver gets an order by another id",
    /^13\. What/,
    ({ received }) => first(received).send_id = "other",
  ],
  [
    "an order comes at another receiver",
    /^13\. What/,
    ({ received }) => first(received).url = "http://receivers/other",
  ],
  [
    "a repeated send has another body",
    /^13\. What/,
    ({ received }) => first(received.slice(-1)).body = "other",
  ],
  [
    "a signature is not valid",
    /^13\. What/,
    ({ received }) => first(received).isSigned = false,
  ],
  ["version 2 comes before version 1", /^14\. /, ({ received }) => received.reverse()],
  [
    "version 2 comes before version 1 was accepted",
    /^14\. /,
    (evidence) => {
      const [one] = ordersOf(evidence, 1);
      const place = evidence.received.findLastIndex(({ send_id, url }) =>
        send_id === one?.send_id && url === one.url
      );
      for (const receipt of evidence.received.slice(0, place + 1)) {
        if (receipt.send_id === one?.send_id) receipt.status = undefined;
      }
      const [again] = evidence.received.slice(place);
      if (again) evidence.received.push({ ...again, status: 200 });
    },
  ],
  [
    "an outage made an order fail",
    /^15\. Every order/,
    ({ tables }) => {
      first(tables.orders).status = "ABORTED";
      first(tables.ledger).status = "FAILED";
    },
  ],
  [
    "an order stays parked",
    /^15\. Every order/,
    ({ tables }) => first(tables.orders).status = "PARKED",
  ],
  [
    "an endpoint does not come back",
    /^15\. Every endpoint/,
    ({ tables }) => first(tables.endpoints).state = "FAILING",
  ],
  [
    "an endpoint stays draining",
    /^15\. Every endpoint/,
    ({ tables }) => first(tables.endpoints).is_draining = true,
  ],
  [
    "a receiver gets again what it accepted, while nothing was wrong",
    /^12\. What a receiver accepted/,
    ({ injected }) => injected.length = 0,
  ],
  [
    "a receiver gets again what it accepted, because of a fault elsewhere",
    /^12\. What a receiver accepted/,
    ({ injected }) => first(injected).fault.target = "notification-1 > nats",
  ],
  [
    "an order is sent after the ledger said SUCCEEDED",
    /^12\. Nothing is sent/,
    ({ received, injected }) => {
      injected.length = 0;
      first(received.slice(-1)).at += 1_000;
    },
  ],
];

testHarms(harms);
