// Crashes on the way of an order to its receiver, and while orders are parked, probe their endpoint and
// return. The orders are of one endpoint in strict order.
import { orders } from "../../../notification/orders/orders.ts";
import { statement } from "./fault_point.ts";
import { leasedPoints } from "./leased_points.ts";
import { tableLeases } from "./table_leases.ts";
import type { OrderPoint, OrderStage } from "./order_stage.ts";

const sent = { "orders SUCCEEDED": 1, "ledger SUCCEEDED": 1 };
const once = "The receiver got the order once";
const twice = "The receiver got the order twice, with the same webhook-id; it drops one";
const allOf = (count: number) => ({ "orders SUCCEEDED": count, "ledger SUCCEEDED": count });

const failing = `update endpoints
  set state = 'FAILING', failures = 5, failing_since = now(), next_probe_at = now()`;
const draining = "update endpoints set is_draining = true";
const paused = "update endpoints set state = 'PAUSED'";
const park = "update outbox_orders set status = 'PARKED', next_run_at = null";

const of = "notification" as const;
const parks = "set status = 'PARKED'";
const lets = "set probe_order_id = probe.id";
const returns = "), unparked as (";
const notes = "select endpoint_id, state, failures";

/** With the parked orders of an endpoint. */
const parked = (state: string, count: number) => async (stage: OrderStage) => {
  await stage.give(count);
  await stage.change(park);
  await stage.change(state);
};

const bothSent = { sends: 2, seen: "The receiver got both orders, in their order" };

export const orderPoints: OrderPoint[] = [
  ...leasedPoints<typeof of, OrderStage>({
    of,
    leases: tableLeases({
      of,
      table: orders,
      failsAs: {
        status: "ABORTED",
        retry: "attempts = row.attempts + 1,\n    next_run_at",
      },
    }),
    maxAttempts: "NOTIFICATION_WEBHOOKS_MAX_ATTEMPTS",
    words: {
      ...{ row: "order", rows: "orders", attempts: "order attempts" },
      ...{ work: "send", worked: "sent" },
    },
    add: (stage) => stage.give(),
    before: {},
    adds: {},
    finished: { ends: sent, sends: 1, seen: once },
    again: {
      next: "The lease expires; the order is claimed and sent again",
      ...{ sends: 2, seen: twice },
    },
    settled: {
      next: "Nothing",
      also: { is: "the ledger", table: "idempo_ledger", counts: { "ledger SUCCEEDED": 1 } },
    },
    gaveUp: {
      sends: 0,
      seen: "Nothing; the order is a dead letter",
      also: { is: "the ledger", table: "idempo_ledger", counts: { "ledger FAILED": 1 } },
    },
    fails: {
      begin: (stage) => Promise.resolve(stage.accepts(false)),
      end: (stage) => Promise.resolve(stage.accepts(true)),
    },
  }),
  {
    dies: "after the settle of a failure, before it is noted at the endpoint",
    of,
    at: statement("before", notes),
    ownSettings: { NOTIFICATION_ENDPOINTS_FAILURES_TO_PARK: "1" },
    before: (stage) => {
      stage.accepts(false);
      return stage.give();
    },
    leaves: { "orders FAILED": 1, "order attempts": 1 },
    afterwards: (stage) => Promise.resolve(stage.accepts(true)),
    next: "The endpoint is still ACTIVE; the order is sent again when it is due",
    ends: { ...sent, "order attempts": 1 },
    sends: 1,
    seen: once,
  },
  {
    dies: "before waiting orders are parked",
    of,
    at: statement("before", parks),
    before: async (stage) => {
      await stage.give(2);
      await stage.change(failing);
      await stage.change("update outbox_orders set next_run_at = now() + interval '2 seconds'");
    },
    leaves: { "orders PENDING": 2, "endpoint FAILING": 1 },
    next: "Another process parks them, and probes the endpoint with the first",
    ends: allOf(2),
    ...bothSent,
  },
  {
    dies: "after waiting orders are parked",
    of,
    at: statement("after", parks),
    before: async (stage) => {
      await stage.give(2);
      await stage.change(failing);
      await stage.change("update outbox_orders set next_run_at = now() + interval '2 seconds'");
    },
    leaves: { "orders PARKED": 2, "endpoint FAILING": 1 },
    next: "Another process probes the endpoint with the first",
    ends: allOf(2),
    ...bothSent,
  },
  {
    dies: "when half of the waiting orders are parked",
    of,
    at: statement("before", parks, 2),
    before: async (stage) => {
      await stage.give(600);
      await stage.change(paused);
      await stage.change("update outbox_orders set next_run_at = now() + interval '10 seconds'");
    },
    leaves: { "orders PARKED": 500, "orders PENDING": 100, "endpoint PAUSED": 1 },
    afterwards: async (stage) => {
      await stage.change("update endpoints set state = 'ACTIVE', is_draining = true");
      await stage.change("update outbox_orders set next_run_at = now() where not parked");
    },
    next:
      "The later ones were parked first; the endpoint is resumed, and the earlier ones are sent first",
    ends: allOf(600),
    sends: 600,
    seen: "The receiver got all of them once, in their order",
  },
  {
    dies: "before an order is let through as a probe",
    of,
    at: statement("before", lets),
    before: parked(failing, 2),
    leaves: { "orders PARKED": 2, "endpoint FAILING": 1 },
    next: "Another process lets it through",
    ends: allOf(2),
    ...bothSent,
  },
  {
    dies: "after an order is let through as a probe",
    of,
    at: statement("after", lets),
    before: parked(failing, 2),
    leaves: { "orders PENDING": 1, "orders PARKED": 1, "endpoint FAILING": 1 },
    next: "Another process claims it, and sends it although the endpoint is FAILING",
    ends: allOf(2),
    ...bothSent,
  },
  {
    dies: "after the send of a probe, before its settle",
    of,
    at: statement("before", "update outbox_orders row\n  set status = 'SUCCEEDED'"),
    before: parked(failing, 2),
    leaves: { "orders SENDING": 1, "orders PARKED": 1, "endpoint FAILING": 1 },
    next: "The lease expires; the probe is claimed and sent again",
    ends: { ...allOf(2), "order attempts": 1 },
    sends: 3,
    seen: "The receiver got the probe twice, with the same webhook-id",
  },
  {
    dies: "after the settle of a probe, before the endpoint is ACTIVE",
    of,
    at: statement("before", notes),
    before: parked(failing, 2),
    leaves: { ...sent, "orders PARKED": 1, "endpoint FAILING": 1 },
    next: "Another process finds that the probe has SUCCEEDED, and the endpoint is ACTIVE",
    ends: allOf(2),
    ...bothSent,
  },
  {
    dies: "after a probe has failed, before the next one is planned",
    of,
    at: statement("before", notes),
    before: async (stage) => {
      stage.accepts(false);
      await parked(failing, 2)(stage);
    },
    leaves: { "orders PARKED": 2, "endpoint FAILING": 1 },
    afterwards: (stage) => Promise.resolve(stage.accepts(true)),
    next:
      "Another process finds that the probe has ended, and plans the next; it used up no attempt",
    ends: allOf(2),
    ...bothSent,
  },
  {
    dies: "when half of the parked orders have returned",
    of,
    at: { ...statement("before", returns, 2), withholds: "set status = 'SENDING'" },
    before: parked(draining, 600),
    leaves: { "orders PENDING": 500, "orders PARKED": 100, "endpoint ACTIVE, draining": 1 },
    next: "The others return after the next start",
    ends: allOf(600),
    sends: 600,
    seen: "The receiver got all of them once, in their order",
  },
  {
    dies: "when all parked orders have returned, before the draining ends",
    of,
    at: { ...statement("before", "set is_draining = false"), withholds: "set status = 'SENDING'" },
    before: parked(draining, 2),
    leaves: { "orders PENDING": 2, "endpoint ACTIVE, draining": 1 },
    next: "Another process ends it; new orders are parked until then",
    ends: allOf(2),
    ...bothSent,
  },
];
