import type { Database } from "@kenri/shared/postgres/postgres.ts";
import type { Log } from "@kenri/shared/process/log.ts";
import { sha256 } from "@kenri/shared/process/sha256.ts";
import type { Handover } from "@kenri/shared/queue/handover.ts";
import type { Job, Outcome, Settlement } from "@kenri/shared/queue/job.ts";
import { Worker } from "@kenri/shared/queue/worker.ts";
import { inSpan, tracing } from "@kenri/shared/telemetry/tracing.ts";
import { FailingInHand } from "../endpoints/failing_in_hand.ts";
import { noteOutcomes } from "../endpoints/health.ts";
import { observeClaimed, observeOrders } from "./metrics.ts";
import { type OrderRow, orders, type Sent } from "./orders.ts";
import { expiresInMs, outcomeOf } from "./receivers_answer.ts";
import type { Reason } from "./reasons.ts";
import { requestOf, SecretUnknown } from "./requests.ts";
import { type Sender, SenderUnavailable } from "./sender_client.ts";
import type { OrdersConfig, SendOptions } from "./settings.ts";

// Sends what is due: claim, read the ledger, send, settle with the ledger.

export interface SendParts {
  database: Database;
  sender: Sender;
  toSend: Handover<OrderRow>;
  wakeEndpoints: () => void; // the state of an endpoint has changed
  log: Log;
  abandon: AbortSignal;
}

export async function sendOrders(
  parts: SendParts,
  options: OrdersConfig,
  stop: AbortSignal,
): Promise<void> {
  const worker = new Worker(sending(parts, options), parts.log, parts.abandon);
  await worker.run(parts.toSend, stop);
}

export function sending(
  { database, sender, wakeEndpoints, log }: Omit<SendParts, "toSend" | "abandon">,
  options: OrdersConfig,
): Job<OrderRow, Sent> {
  const job = orders.jobOn(database, options.orders, observeOrders);
  const atOnce = new Map<string, number>();
  const failing = new FailingInHand(options.endpoints.failuresToPark);
  return {
    name: "orders",
    ...options.orders,
    ...options.orders.plain,
    ...job,
    claim: async (limit, context) => {
      const claim = await job.claim(limit, context);
      for (const { lane, content: { endpoint } } of claim.rows) {
        if (lane !== undefined && endpoint) atOnce.set(lane, endpoint.at_once);
      }
      return claim;
    },
    claimed: observeClaimed,
    atOnce: (lane) => atOnce.get(lane) ?? options.endpoints.atOnce,
    retriesOf: (row) => sendOptions(row, options),
    work: async (row, traceparent) => {
      const undone = withoutSend(row, failing);
      if (undone) return undone;
      const { secretKeys } = options.endpoints;
      const outcome = await sendOrder(
        sender,
        row,
        sendOptions(row, options),
        secretKeys,
        traceparent,
      ).catch((error) => withoutSecret(log, row, error));
      if ("result" in outcome && outcome.result) failing.note(row, outcome.result);
      return outcome;
    },
    settle: async (settled) => {
      const owned = await job.settle(settled);
      const own = settled.filter(({ row }) => owned.has(row.id));
      for (const one of own) logOrder(log, one);
      await noteTried(database, options, own).then(
        ({ changed }) => changed && wakeEndpoints(),
        (error) => log.warn("The health of endpoints can't be updated: {error}", { error }),
      );
      return owned;
    },
    stepOf: () => ({ name: "order.process", kind: "internal" }),
    traceparentOf: ({ content }) => content.traceparent,
    about: aboutOrder,
  };
}

function sendOptions({ content }: OrderRow, { orders }: OrdersConfig): SendOptions {
  return content.endpoint_id === null ? orders.plain : orders.webhooks;
}

// An endpoint that is put back is looked at again after this time by a worker that finds it so.
const parkedMs = 1_000;
const behindMs = 200;
const withoutSecretMs = 60_000;

// What is decided without a send: by the ledger, by the time, or by the state of the endpoint.
function withoutSend(row: OrderRow, failing: FailingInHand): Outcome<Sent> | undefined {
  const outcome = byLedger(row) ?? byEndpoint(row, failing);
  if (outcome) return outcome;
  return expiresInMs(row) <= 0 ? ended("EXPIRED", "the order has expired") : undefined;
}

// Only a replay or an order that was sent back passes an entry, and only once.
function byLedger({ content: { ledger, request_digest, operation_id } }: OrderRow):
  | Outcome<Sent>
  | undefined {
  if (!ledger) return undefined;
  if (ledger.request_digest !== request_digest) {
    return ended("IDEMPOTENCY_CONFLICT", "the ledger has another request under this key");
  }
  if (operation_id !== null && ledger.operation_id !== operation_id) return undefined;
  if (ledger.status === "SUCCEEDED") return { kind: "done", result: { tried: false } };
  const reason = (ledger.reason_code ?? "INTERNAL_ERROR") as Reason;
  return ended(reason, "the ledger says that this order has failed");
}

function byEndpoint(row: OrderRow, failing: FailingInHand): Outcome<Sent> | undefined {
  const { lane, content } = row;
  const { endpoint_id, endpoint, is_behind_parked } = content;
  if (endpoint_id === null) return undefined;
  if (!endpoint || endpoint.state === "DELETED") {
    return ended("ENDPOINT_DELETED", "the endpoint was deleted");
  }
  // Not even a probe may pass an earlier order of its key, which was parked after it was let through.
  if (is_behind_parked) return later(behindMs);
  if (endpoint.state === "FAILING" && endpoint.is_probe) return undefined;
  if (endpoint.state !== "ACTIVE" || failing.has(row)) return later(parkedMs, lane);
  return undefined;
}

function later(delayMs: number, lane?: string): Outcome<Sent> {
  return { kind: "later", delayMs, ...(lane === undefined ? {} : { lane }) };
}

function ended(reason: Reason, error: string): Outcome<Sent> {
  return { kind: "failed", error, attempted: false, result: { tried: false, reason } };
}

async function sendOrder(
  sender: Sender,
  row: OrderRow,
  options: SendOptions,
  secretKeys: Uint8Array[] | undefined,
  traceparent: string | undefined,
): Promise<Outcome<Sent>> {
  const request = requestOf(row, options.sendTimeoutMs, secretKeys);
  if (!request) return ended("UNREADABLE_REQUEST", "the request can't be read");
  try {
    const send = async () => {
      const from = performance.now();
      const answer = await sender.send(request);
      return outcomeOf(row, request, { answer, ms: performance.now() - from }, options);
    };
    if (!tracing) return await send();
    return await inSpan({ name: "broker.send", kind: "client" }, traceparent ?? null, send);
  } catch (error) {
    if (error instanceof SenderUnavailable) return { kind: "unavailable", error: error.message };
    throw error;
  }
}

// Nothing is counted: a setting is wrong, and that is not the fault of the endpoint.
function withoutSecret(log: Log, { lane, content }: OrderRow, error: unknown): Outcome<Sent> {
  if (!(error instanceof SecretUnknown)) throw error;
  const { endpoint_id } = content;
  log.error("Endpoint {endpoint_id} gets nothing: {error}", { endpoint_id, error: error.message });
  return later(withoutSecretMs, lane);
}

type Settled = Settlement<OrderRow, Sent>[];

// The payload is never logged.
function logOrder(log: Log, { row, kind, result }: Settled[number]): void {
  if (!result?.tried) return;
  const { reason: reason_code, ms } = result;
  const properties = { outcome: kind, reason_code, ms, ...aboutOrder(row) };
  if (reason_code === undefined) log.info("Order {order_id}: {outcome}", properties);
  else log.warn("Order {order_id}: {outcome}, {reason_code}", properties);
}

function noteTried(
  database: Database,
  { endpoints }: OrdersConfig,
  settled: Settled,
): ReturnType<typeof noteOutcomes> {
  const outcomes = settled.flatMap(({ row: { id, content }, result }) => {
    const { endpoint_id: endpointId, endpoint } = content;
    return endpointId && endpoint && result?.tried
      ? [{ endpointId, orderId: id, reason: result.reason, failuresBefore: endpoint.failures }]
      : [];
  });
  return noteOutcomes(database, endpoints, outcomes);
}

// Of the key only its hash.
function aboutOrder({ id, attempts, content }: OrderRow): Record<string, unknown> {
  const { idempotency_key, adapter, endpoint_id, event_id, trace_id } = content;
  const key = sha256(idempotency_key);
  return {
    order_id: id,
    idempotency_key_sha256: key,
    attempts,
    adapter,
    endpoint_id,
    event_id,
    trace_id,
  };
}
