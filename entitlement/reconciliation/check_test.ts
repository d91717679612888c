import assert from "node:assert/strict";
import { classifier, type Row, type State } from "./check.ts";

const caughtUp = {
  missing: ["missing"],
  dead: ["dead"],
  delivered_up_to: 10,
  undelivered: 0,
  settled_up_to: 10,
  unsettled: 0,
  remembered_since: "2026-01-01T00:00:00.000000Z",
};
const behind = { ...caughtUp, undelivered: 5 };

const redelivering = { ...caughtUp, settled_up_to: 6, unsettled: 1 };

const published = (more: Partial<Row> = {}): Row => ({
  event_id: "missing",
  occurred_at: "2026-01-02T00:00:00.000000Z",
  user_id: "ann",
  stock_keeping_unit: "book",
  version: 1,
  status: "PUBLISHED",
  published_seconds_ago: 100,
  stream_seq: 7,
  ...more,
});

const cases: [string, typeof caughtUp, Row, State][] = [
  ["received", caughtUp, published({ event_id: "other" }), "RECEIVED"],
  [
    "received, and waits to be published again",
    caughtUp,
    published({ event_id: "other", status: "PENDING" }),
    "RECEIVED",
  ],
  ["published long ago", caughtUp, published(), "MISSING"],
  ["published a moment ago", caughtUp, published({ published_seconds_ago: 59 }), "IN_FLIGHT"],
  ["given out, while others are not", behind, published(), "MISSING"],
  ["given out, and may be delivered again", redelivering, published(), "IN_FLIGHT"],
  ["before all that may be delivered again", redelivering, published({ stream_seq: 6 }), "MISSING"],
  [
    "after the last that is known to be settled, and nothing can be delivered again",
    { ...redelivering, unsettled: 0 },
    published(),
    "MISSING",
  ],
  [
    "no longer delivered, while others may be redelivered",
    redelivering,
    published({ event_id: "dead" }),
    "DEAD",
  ],
  ["not given out yet", behind, published({ stream_seq: 11 }), "IN_FLIGHT"],
  [
    "with a sequence of an earlier stream, and nothing to give out",
    caughtUp,
    published({ stream_seq: 11 }),
    "MISSING",
  ],
  ["not published yet", caughtUp, published({ status: "PENDING" }), "IN_FLIGHT"],
  ["being published", caughtUp, published({ status: "IN_FLIGHT" }), "IN_FLIGHT"],
  ["never published", caughtUp, published({ status: "FAILED" }), "DEAD"],
  ["no longer delivered by JetStream", caughtUp, published({ event_id: "dead" }), "DEAD"],
  [
    "no longer delivered once, and on its way again",
    caughtUp,
    published({ event_id: "dead", status: "PENDING" }),
    "IN_FLIGHT",
  ],
  ["deleted from the outbox", caughtUp, published({ status: null }), "MISSING"],
  [
    "deleted from the outbox, and perhaps not given out",
    behind,
    published({ status: null }),
    "IN_FLIGHT",
  ],
  [
    "deleted from the outbox, and no longer delivered",
    caughtUp,
    published({ event_id: "dead", status: null }),
    "DEAD",
  ],
  [
    "older than what the receiver remembers",
    caughtUp,
    published({ occurred_at: "2025-12-31T23:59:59.999999Z" }),
    "TOO_OLD",
  ],
];

for (const [name, receipt, row, state] of cases) {
  Deno.test(`an event ${name} is ${state}`, () => {
    assert.equal(classifier(receipt, 60)(row), state);
  });
}
