// The orders of one endpoint in the model, and the real functions that send and park them. An order
// has the number of its event.
import type { Settlement } from "../../../shared/queue/job.ts";
import { settlementOf } from "../../../shared/queue/outcomes.ts";
import type { SendAnswer, SendFailure } from "../../../proto/send.ts";
import {
  type OrderContent,
  type OrderRow as Leased,
  orders,
  type Sent,
} from "../../../notification/orders/orders.ts";
import { sending } from "../../../notification/orders/send_orders.ts";
import { SenderUnavailable } from "../../../notification/orders/sender_client.ts";
import type { OrdersConfig } from "../../../notification/orders/settings.ts";
import type { Database } from "../../../shared/postgres/postgres.ts";
import type { Log } from "../../../shared/process/log.ts";
import { parkBatch } from "../../../notification/endpoints/park.ts";
import { endLostProbe, letProbeThrough } from "../../../notification/endpoints/probe.ts";
import { endDraining, unparkBatch } from "../../../notification/endpoints/unpark.ts";
import { receiveEvents } from "../../../notification/receive_events.ts";
import { maxAttempts } from "./hand.ts";
import { asNotification } from "./inbox_calls.ts";
import { asClaimed, idOf, type LeasedCalls, leasedCalls } from "./leased_rows.ts";
import { access, endpointId, keyOf } from "./order_tables.ts";
import {
  type Changed,
  RealCalls,
  type Rewrite,
  unlessInterrupted,
  type View,
} from "./real_calls.ts";
import { type Event, events, type Held, type Orders, type Outcome } from "./state.ts";

/** One step of keepEndpoints. */
export type Keeping = keyof typeof keeping;

/** What the receiver does with a request, or the sender. */
export type Reception = "accepts it" | "is down" | "accepts it, but answers too late" | "away";

const answers: Record<Exclude<Reception, "away">, SendAnswer | SendFailure> = {
  "accepts it": { status: 200, headers: {}, body: "" },
  "is down": { reason_code: "CONNECTION_FAILED", message: "refused" },
  "accepts it, but answers too late": { reason_code: "TIMEOUT", message: "too late" },
};

export interface OrderCalls extends LeasedCalls<Orders> {
  real: RealCalls<Orders>;
  /** Works on a row as the real job does. `isSent`: the sender was asked. */
  work(held: Held, reception: Reception): Promise<{ outcome: Outcome; isSent: boolean }>;
  /** `killed`: the process dies between the insert and the end of the waits. */
  receive(orders: Orders, event: Event, killed: boolean): Promise<Changed<Orders, unknown>>;
  keepEndpoint(orders: Orders, what: Keeping): Promise<Changed<Orders, unknown>>;
}

const retries = { maxAttempts, backoff: { delaysMs: [3_600_000] } };

const options: OrdersConfig = {
  orders: {
    ...{ enabled: true, worker: "model", batchSize: 10, pollIntervalMs: 1_000 },
    ...{ leaseMs: 3_600_000, ledgerTtlMs: 3_600_000 },
    plain: { ...retries, sendTimeoutMs: 1_000 },
    webhooks: { ...retries, sendTimeoutMs: 1_000 },
  },
  endpoints: {
    ...{ atOnce: 4, failuresToPark: 1, probeMinMs: 3_600_000, probeMaxMs: 3_600_000 },
    ...{ disableAfterMs: 24 * 3_600_000, keepMs: 24 * 3_600_000, maxPerCaller: 1 },
    secretKeys: [new Uint8Array(32)],
  },
  sender: undefined,
};

const say = () => {};
const log = { info: say, warn: say, error: say } as unknown as Log;

const jobOn = (database: Database, send: () => Promise<SendAnswer | SendFailure>) =>
  sending({
    ...{ database, log, wakeEndpoints: say },
    sender: { send, check: () => Promise.resolve(undefined) },
  }, options);

export function orderCalls(rewrite?: Rewrite): OrderCalls {
  const real = new RealCalls(access, rewrite);
  return {
    real,
    ...leasedCalls(real, {
      claim: orders.claim,
      keep: orders.extend,
      settle: orders.settle,
      resultAt: () => ({ tried: true }),
      seenIn: ({ endpoint, ledger, is_behind_parked, operation_id }: OrderContent) => ({
        ...{ ledger, is_behind_parked, operation_id },
        endpoint: endpoint && { ...endpoint, secrets: [] },
      }),
    }, { ofClaims, ofRow }),
    settle: (tables, held, killedBefore) =>
      real.after(
        tables,
        `settle ${held.event} ${held.leased} ${JSON.stringify([held.outcome, held.seen])}`,
        (database) => unlessInterrupted(jobOn(database, noSend).settle([settlementIn(held)])),
        { killedBefore, view: ofRow(held.event) },
      ),
    work: async (held, reception) => {
      let isSent = false;
      const send = () => {
        isSent = true;
        return reception === "away"
          ? Promise.reject(new SenderUnavailable("away"))
          : Promise.resolve(answers[reception]);
      };
      const row = rowOf(held);
      const outcome = await jobOn({} as Database, send).work(row);
      const { row: _row, ...settlement } = settlementOf(row, outcome, retries);
      return { outcome: outcomeOf(settlement), isSent };
    },
    receive: (tables, event, killed) =>
      real.after(
        tables,
        `receive ${event}`,
        (database) =>
          unlessInterrupted(
            receiveEvents(database, [asNotification(event)], { predecessorWaitMs: 3_600_000 }),
          ),
        killed ? { killedBefore: /set awaits_predecessor = false/ } : {},
      ),
    keepEndpoint: (tables, what) =>
      real.after(tables, what, (database): Promise<unknown> => keeping[what](database)),
  };
}

const keeping = {
  park: (database: Database) => parkBatch(database, endpointId),
  probe: (database: Database) => letProbeThrough(database, endpointId),
  endLostProbe: (database: Database) => endLostProbe(database, endpointId, options.endpoints),
  unpark: (database: Database) => unparkBatch(database, endpointId),
  endDraining: (database: Database) => endDraining(database, endpointId),
};

const none = events.map(() => false);

const ofClaims: View<Orders> = {
  of: (tables) => ({ ...tables, processed: none }),
  unread: /processed_events|notifications/,
};

const ofRow = (event: Event): View<Orders> => ({
  of: ({ rows, ledger, endpoints }) => ({
    rows: rows.map((row, at) => at === event ? row : null),
    ledger: ledger.map((status, at) => at === event ? status : null),
    endpoints,
    processed: none,
  }),
  unread: /processed_events|notifications|from outbox_orders/,
});

const noSend = () => Promise.reject(new Error("A settle sends nothing"));

function rowOf(held: Held): Leased {
  const event_id = idOf(held.event);
  const content = {
    ...{ caller: "model", idempotency_key: keyOf(held.event), adapter: "webhook" },
    ...{
      request: '{"payload":{}}',
      request_digest: "d",
      endpoint_id: endpointId,
      event_id,
      trace_id: "t",
    },
    ...{
      traceparent: null,
      claimed_at_ms: 0,
      expires_in_ms: null,
      throttled_ms: null,
      ...held.seen,
    },
  } as OrderContent;
  return { ...asClaimed(held, content), attempts: held.attempts, lane: endpointId };
}

// Without what differs each time.
function outcomeOf(settled: Omit<Settlement<Leased, Sent>, "row">): Outcome {
  const { result, ...settlement } = settled as Settlement<Leased, Sent>;
  const sent = result && {
    tried: result.tried,
    ...(result.reason ? { reason: result.reason } : {}),
    ...(result.status ? { status: result.status } : {}),
  };
  const isLater = "delayMs" in settlement && settlement.kind === "released";
  return {
    ...(settlement.kind === "done" ? { place: null } : {}),
    ...(isLater ? { later: true } : {}),
    ...settlement,
    ...(sent ? { result: sent } : {}),
  } as Outcome;
}

function settlementIn(held: Held): Settlement<Leased, Sent> {
  const { outcome } = held;
  const pause = outcome?.kind === "released" && outcome.later ? { delayMs: 3_600_000 } : {};
  return { ...outcome, ...pause, row: rowOf(held) } as unknown as Settlement<Leased, Sent>;
}
