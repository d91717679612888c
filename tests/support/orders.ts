// Orders over HTTP, as callers give them, and their rows. A stage has one notification service, the
// real sender and a receiver that does as a test wants.
import assert from "node:assert/strict";
import { plantedPassword, plantedPayload, plantedSecretKey } from "../../tools/planted.ts";
import { ask } from "../../tools/servers/asking.ts";
import {
  type ServiceProcess,
  type Settings,
  startService,
} from "../../tools/servers/service_process.ts";
import { until } from "../../tools/servers/wait.ts";
import { type Answer, call, command } from "./api.ts";
import { freshPlace, settingsOf, startNotification } from "./notification.ts";
import type { FreshPlace } from "./places.ts";
import { newKey } from "./points.ts";
import { type Receiver, startReceiver } from "./receiver.ts";

type Fields = Record<string, unknown>;
type Headers = Record<string, string>;

export const senderToken = `${plantedPassword}-of-the-sender`;

/** Of a sender that may send to this machine. */
export const senderSettings: Settings = {
  SENDER_TOKEN: senderToken,
  SENDER_ALLOW_ADDRESSES: "127.0.0.1",
  SENDER_PLAIN_HTTP: "true",
};

export const orderSettings = (sender: Pick<ServiceProcess, "url">): Settings => ({
  NOTIFICATION_DEBUG_ENABLED: "true",
  NOTIFICATION_ORDERS_POLL_INTERVAL: "100ms",
  NOTIFICATION_ORDERS_BACKOFF: "50ms",
  NOTIFICATION_WEBHOOKS_BACKOFF: "50ms",
  NOTIFICATION_ENDPOINTS_SECRET_KEY: plantedSecretKey,
  NOTIFICATION_SENDER_URL: sender.url,
  NOTIFICATION_SENDER_TOKEN: senderToken,
});

export interface Orders extends AsyncDisposable {
  url: string; // of the notification service
  ownerUrl: string;
  place: FreshPlace;
  service: ServiceProcess;
  sender: ServiceProcess;
  receiver: Receiver;
  replica(more?: Settings): Promise<ServiceProcess>; // another one; the test ends it
  rows<Row>(sql: string, values?: unknown[]): Promise<Row[]>; // as the owner
  close(): Promise<void>;
}

/** What is undefined in the settings of the sender has its default. */
export async function startOrders(
  more: Settings = {},
  ofSender: Record<string, string | undefined> = {},
): Promise<Orders> {
  const given = Object.entries({ ...senderSettings, ...ofSender })
    .filter((entry): entry is [string, string] => entry[1] !== undefined);
  const stack = new AsyncDisposableStack();
  const receiver = stack.use(await startReceiver());
  const place = stack.use(await freshPlace());
  const sender = stack.use(await startService("sender", Object.fromEntries(given)));
  const service = stack.use(await startNotification(place, { ...orderSettings(sender), ...more }));
  const close = () => stack.disposeAsync();
  return {
    url: service.url,
    ownerUrl: place.ownerUrl,
    place,
    service,
    sender,
    receiver,
    replica: (others = {}) =>
      startService("notification", {
        ...settingsOf(place),
        ...orderSettings(sender),
        ...more,
        ...others,
      }),
    rows: (sql, values) => ask(place.ownerUrl, sql, values),
    close,
    [Symbol.asyncDispose]: close,
  };
}

export const somePayload = { text: plantedPayload };

// Without a key, each call gets a new one.
export function order(
  { url }: { url: string },
  fields: Fields | string,
  key: string | undefined = newKey(),
  headers: Headers = {},
): Promise<Answer> {
  const body = typeof fields === "string"
    ? fields
    : { adapter: "http", payload: somePayload, ...fields };
  return command(`${url}/v1/orders`, body, key, headers);
}

/** The same for one that is accepted; returns its id. */
export async function give(
  stage: { url: string },
  fields: Fields | string,
  key?: string,
  headers?: Headers,
): Promise<string> {
  const { status, text, json } = await order(stage, fields, key, headers);
  assert.equal(status, 202, text);
  return json.order_id;
}

export function getOrder(
  { url }: { url: string },
  orderId: string,
  headers: Headers = {},
): Promise<Answer> {
  return call(`${url}/v1/orders/${encodeURIComponent(orderId)}`, { headers });
}

export function findOrder(
  { url }: { url: string },
  idempotencyKey: string,
  headers: Headers = {},
): Promise<Answer> {
  const query = new URLSearchParams({ idempotency_key: idempotencyKey });
  return call(`${url}/v1/orders?${query}`, { headers });
}

export function createEndpoint(
  { url }: { url: string },
  fields: Fields,
  headers: Headers = {},
): Promise<Answer> {
  return command(`${url}/v1/endpoints`, fields, undefined, headers);
}

export type Status = "PENDING" | "SENDING" | "SUCCEEDED" | "FAILED" | "ABORTED" | "PARKED";

export interface OrderRow {
  id: string;
  idempotency_key: string;
  adapter: "http" | "webhook";
  endpoint_id: string | null;
  event_id: string | null;
  request_digest: string;
  aggregate_key: string;
  status: Status;
  attempts: number;
  last_error_code: string | null;
  last_error_msg: string | null;
  next_run_at: Date | null;
  locked_by: string | null;
  created_at: Date;
  updated_at: Date;
  expires_at: Date | null;
  operation_id: string | null;
}

/** In the order of their acceptance. */
export function orderRows({ ownerUrl }: Pick<Orders, "ownerUrl">): Promise<OrderRow[]> {
  return ask<OrderRow>(
    ownerUrl,
    `select id, idempotency_key, adapter, endpoint_id, event_id, request_digest, aggregate_key,
       status, attempts, last_error_code, last_error_msg, next_run_at, locked_by, created_at,
       updated_at, expires_at, operation_id
     from outbox_orders
     order by created_at, position, id`,
  );
}

/** Waits until all orders have one of these statuses. */
export async function untilAllAre(
  stage: Pick<Orders, "ownerUrl">,
  statuses: Status[],
  withinMs?: number,
): Promise<OrderRow[]> {
  let rows: OrderRow[] = [];
  await until(`all are ${statuses.join(" or ")}`, async () => {
    rows = await orderRows(stage);
    return rows.length > 0 && rows.every(({ status }) => statuses.includes(status));
  }, withinMs).catch((error) => {
    const seen = rows.map(({ status, last_error_code }) => `${status} ${last_error_code}`);
    throw new Error(`${error.message}: ${[...new Set(seen)].join(", ")}`);
  });
  return rows;
}

export interface LedgerRow {
  request_digest: string;
  status: "SUCCEEDED" | "FAILED";
  http_status: number | null;
  reason_code: string | null;
  response_payload_json: unknown;
  adapter: string | null;
  attempts: number;
  first_sent_at: Date | null;
  decided_at: Date;
  order_id: string | null;
  operation_id: string | null;
}

/** Without the keys, which no output of a test may contain. */
export function ledger({ ownerUrl }: Pick<Orders, "ownerUrl">): Promise<LedgerRow[]> {
  return ask<LedgerRow>(
    ownerUrl,
    `select request_digest, status, http_status, reason_code, response_payload_json, adapter, attempts,
       first_sent_at, decided_at, order_id, operation_id
     from idempo_ledger
     order by decided_at`,
  );
}

export interface AttemptRow {
  outcome: string;
  reason_code: string | null;
  error: string | null;
  http_status: number | null;
  request_headers: Record<string, string> | null;
  response_headers: Record<string, string> | null;
  response_body: string | null;
  operation_id: string | null;
  took_ms: number;
}

/** In their order. */
export function attemptsOf(
  { ownerUrl }: Pick<Orders, "ownerUrl">,
  orderId: string,
): Promise<AttemptRow[]> {
  return ask<AttemptRow>(
    ownerUrl,
    `select outcome, reason_code, error, http_status, request_headers, response_headers,
       response_body, operation_id, extract(epoch from ended_at - begun_at)::float8 * 1000 as took_ms
     from order_attempts
     where id = $1
     order by attempt_id`,
    [orderId],
  );
}
