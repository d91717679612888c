import type { Answered } from "./answers.ts";
import { type CallOptions, query, type Requests } from "./requests.ts";

// Orders: sends to the outside, each made once in effect and on record.

/** What JSON can express. */
export type Json = string | number | boolean | null | Json[] | { [name: string]: Json };

/** Exactly one of `url` and `endpoint_id`. */
export interface NewOrder {
  adapter: "http";
  url?: string | null;
  /** An endpoint of this caller, which gets the payload as a signed webhook. */
  endpoint_id?: string | null;
  payload: Json;
  /** RFC 3339 with an offset. Once this time has passed, the order is not sent any more. */
  expires_at?: string | null;
}

/** The service's answer to a new order. A repeated call gets the same. */
export interface AcceptedOrder extends Answered {
  order_id: string;
  status: "PENDING";
}

export type OrderStatus = "PENDING" | "SENDING" | "SUCCEEDED" | "FAILED" | "ABORTED" | "PARKED";

export interface Order {
  order_id: string;
  /** `FAILED` orders wait for their next attempt, `PARKED` ones until their endpoint is `ACTIVE`. */
  status: OrderStatus;
  adapter: "http" | "webhook";
  url: string | null;
  endpoint_id: string | null;
  /** The event that the order is about. */
  event_id: string | null;
  /** Failed attempts. */
  attempts: number;
  last_error_code: string | null;
  last_error_msg: string | null;
  next_run_at: string | null;
  expires_at: string | null;
  created_at: string;
  finished_at: string | null;
  /** How the order ended. */
  ledger: LedgerEntry | null;
}

export interface LedgerEntry {
  status: "SUCCEEDED" | "FAILED";
  /** That of the receiver, or one that stands for the reason. */
  http_status: number | null;
  reason_code: string | null;
  /** The first 4 KiB of the answer; a string unless they are JSON. */
  response_payload: unknown;
  attempts: number;
  first_sent_at: string | null;
  decided_at: string;
}

export interface OrdersClient {
  /**
   * Hands over a send to the outside. The key identifies the intent, as that of `grant` does. The
   * answer says that the order is kept; `findOrder` says how it ended.
   */
  giveOrder(key: string, order: NewOrder, options?: CallOptions): Promise<AcceptedOrder>;
  findOrder(orderId: string, options?: CallOptions): Promise<Order>;
  /** The order that was given with this key, also long after it has ended. */
  findOrderByKey(key: string, options?: CallOptions): Promise<Order>;
}

export function ordersClient(requests: Requests): OrdersClient {
  return {
    giveOrder: async (key, order, call) => {
      const { body, ...answered } = await requests.post<Omit<AcceptedOrder, keyof Answered>>(
        "/v1/orders",
        key,
        order,
        call,
      );
      return { ...body, ...answered };
    },
    findOrder: (id, call) => requests.get(`/v1/orders/${encodeURIComponent(id)}`, call),
    findOrderByKey: (idempotency_key, call) =>
      requests.get(`/v1/orders${query({ idempotency_key })}`, call),
  };
}
