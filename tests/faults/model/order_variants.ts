// The same as variants.ts for orders.
import { neverQuiet } from "./explore.ts";
import { rules } from "./rules.ts";
import { noFence, type Variant } from "./variants.ts";

const noEvents = { events: [], relays: 0, consumers: 0, deliverers: 0 };
const ordering = { ...noEvents, orders: [0], workers: 1, faults: 1 };

export const orderVariants: Variant[] = [
  {
    name: "SUCCEEDED and the ledger are two statements",
    scope: ordering,
    rewrite: (text, killed) =>
      killed
        ? text.replace(
          /ledger as \(\s+insert into idempo_ledger[^]+(?=select case)/,
          "ledger as (select)\n",
        )
        : text,
    breaks: rules.ledger,
  },
  {
    name: "An order is sent without a look at the ledger",
    scope: { ...ordering, known: [0], faults: 0 },
    rewrite: (text) => text.replace("ledger.idempotency_key = claimed.idempotency_key", "false"),
    breaks: rules.sentAgain,
  },
  {
    name: "processed_events and the order are two transactions",
    scope: ordering,
    rewrite: (text, killed) =>
      killed ? text.replace("on endpoint.state <> 'DELETED'", "on false") : text,
    breaks: rules.fannedOut,
  },
  {
    name: "An order is settled without its token",
    scope: { ...ordering, workers: 2, faults: 2 },
    rewrite: noFence,
    breaks: rules.fence,
  },
  {
    name: "An order of version 2 does not wait for version 1",
    scope: { ...ordering, orders: [0, 1], faults: 0 },
    rewrite: (text) => text.replace("'none' and event.awaits_predecessor", "'none' and false"),
    breaks: rules.orderOrder,
  },
  {
    name: "A parked order does not wait for its predecessor",
    scope: { ...ordering, orders: [1, 3] },
    rewrite: (text) => text.replaceAll(/(row|waiting)\.awaits_predecessor and/g, "false and"),
    breaks: rules.orderOrder,
  },
  {
    name: "An order does not look for parked ones of its key",
    scope: { ...ordering, orders: [0, 1] },
    rewrite: (text) => text.replace("where earlier.parked", "where false"),
    breaks: rules.orderOrder,
  },
  {
    name: "The draining ends while orders are parked",
    scope: { ...ordering, orders: [0, 1] },
    rewrite: (text) =>
      text.replace(
        /and not exists \(\s+select from outbox_orders\s+where parked/,
        "and not exists (select from outbox_orders where false",
      ),
    breaks: rules.parked,
  },
  {
    name: "A worker does not know that an order is the probe",
    scope: { ...ordering, orders: [0, 1] },
    rewrite: (text) =>
      text.replace(
        "'is_probe', endpoint.state = 'FAILING'",
        "'is_probe', false",
      ),
    breaks: neverQuiet,
  },
  {
    name: "A probe whose outcome was not noted never ends",
    scope: { ...ordering, faults: 2 },
    habits: { endsLostProbes: false },
    breaks: neverQuiet,
  },
];
