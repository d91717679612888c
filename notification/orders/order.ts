import { z } from "@hono/zod-openapi";
import { callerOf } from "@kenri/shared/access/caller.ts";
import { storedKeyOf } from "@kenri/shared/commands/stored_answers.ts";
import { ApiError } from "@kenri/shared/http/errors.ts";
import { errorAnswer, fieldSchema } from "@kenri/shared/http/fields.ts";
import type { ScopedRoute } from "@kenri/shared/http/openapi.ts";
import { pathPart } from "@kenri/shared/http/route.ts";
import { valid } from "@kenri/shared/operators/operations.ts";
import { type Database, query, utc } from "@kenri/shared/postgres/postgres.ts";
import { type Sql, sql } from "@kenri/shared/postgres/sql.ts";
import { uuidPattern } from "@kenri/shared/process/uuid.ts";
import type { Handler } from "hono";
import { readOrderRequest } from "./requests.ts";

// An order as its caller sees it, with its entry in the ledger.

export const statuses = [
  "PENDING",
  "SENDING",
  "SUCCEEDED",
  "FAILED",
  "ABORTED",
  "PARKED",
] as const;

const ledgerSchema = z.object({
  status: z.enum(["SUCCEEDED", "FAILED"]),
  http_status: z.int().nullable(),
  reason_code: z.string().nullable(),
  response_payload: z.unknown().openapi({
    description: "The first 4 KiB that the receiver answered; a string unless they are JSON",
  }),
  attempts: z.int(),
  first_sent_at: z.iso.datetime().nullable(),
  decided_at: z.iso.datetime(),
});

export const orderSchema = z.object({
  order_id: z.uuid(),
  status: z.enum(statuses).openapi({
    description:
      "FAILED orders wait for their next attempt; PARKED ones until their endpoint is ACTIVE",
  }),
  adapter: z.enum(["http", "webhook"]).openapi({
    description: "webhook for all that is sent to an endpoint",
  }),
  url: z.string().nullable(),
  endpoint_id: z.uuid().nullable(),
  event_id: z.uuid().nullable().openapi({ description: "The event that the order is about" }),
  attempts: z.int().openapi({ description: "Failed attempts" }),
  last_error_code: z.string().nullable(),
  last_error_msg: z.string().nullable(),
  next_run_at: z.iso.datetime().nullable().openapi({
    description: "When the next attempt is due, for a FAILED order",
  }),
  expires_at: z.iso.datetime().nullable(),
  created_at: z.iso.datetime(),
  finished_at: z.iso.datetime().nullable(),
  ledger: ledgerSchema.nullable().openapi({ description: "How the order ended" }),
}).openapi("Order");

export const exampleId = "019b7c2e-5a7e-7c3a-9a51-7d2f0e6f1b01";

const orderExample = {
  order_id: exampleId,
  status: "SUCCEEDED" as const,
  adapter: "http" as const,
  url: "https://example.com/hook",
  endpoint_id: null,
  event_id: null,
  attempts: 0,
  last_error_code: null,
  last_error_msg: null,
  next_run_at: null,
  expires_at: null,
  created_at: "2026-01-02T03:04:05.678901Z",
  finished_at: "2026-01-02T03:04:05.698901Z",
  ledger: {
    status: "SUCCEEDED" as const,
    http_status: 200,
    reason_code: null,
    response_payload: { ok: true },
    attempts: 0,
    first_sent_at: "2026-01-02T03:04:05.680000Z",
    decided_at: "2026-01-02T03:04:05.698901Z",
  },
};

const noOrder = "no such order";
const answers = {
  200: {
    description: "The order as it is now",
    content: { "application/json": { schema: orderSchema, example: orderExample } },
  },
  404: errorAnswer("The caller has no such order", { NOT_FOUND: noOrder }),
};

export const orderRoute: ScopedRoute = {
  method: "get",
  path: "/v1/orders/{order_id}",
  scope: "orders:read",
  operationId: "findOrder",
  tags: ["Orders"],
  summary: "An order and how it ended",
  request: { params: z.object({ order_id: z.string().openapi({ example: exampleId }) }) },
  responses: {
    ...answers,
    400: errorAnswer("The order_id is invalid", {
      BAD_REQUEST: "order_id must be percent-encoded UTF-8",
    }),
  },
};

const byKeySchema = z.object({
  idempotency_key: fieldSchema().openapi({
    description: "The key under which the order was given",
    example: "payout-1",
  }),
});

export const orderByKeyRoute: ScopedRoute = {
  method: "get",
  path: "/v1/orders",
  scope: "orders:read",
  operationId: "findOrderByKey",
  tags: ["Orders"],
  summary: "The order with a key",
  description:
    "The order of an event has the key `<event_id>:<endpoint_id>`. After 30 days only the ledger " +
    "knows an order; then the answer has no more than the ledger.",
  request: { query: byKeySchema },
  responses: {
    ...answers,
    400: errorAnswer("The idempotency_key is missing or invalid", {
      BAD_REQUEST: "idempotency_key is required",
    }),
  },
};

type Order = z.infer<typeof orderSchema> & Record<string, unknown>;

export function findOrder(database: Database): Handler {
  return async (context) => {
    const id = pathPart(context.req, "order_id");
    const { name: caller } = callerOf(context);
    const [order] = uuidPattern.test(id)
      ? await findOrders(
        database,
        sql`
      where outbox_orders.id = ${id}
        and outbox_orders.caller = ${caller}`,
      )
      : [];
    return shown(order);
  };
}

export function findOrderByKey(database: Database): Handler {
  return async (context) => {
    const { idempotency_key } = valid(byKeySchema.safeParse(context.req.query()));
    const { name: caller } = callerOf(context);
    const storedKey = storedKeyOf({ caller, idempotencyKey: idempotency_key });
    const [order] = await findOrders(
      database,
      sql`
      where outbox_orders.idempotency_key in (${storedKey}, ${idempotency_key})
        and outbox_orders.caller = ${caller}`,
    );
    return shown(order ?? await findInLedger(database, storedKey));
  };
}

function shown(order: Order | undefined): Response {
  if (!order) throw new ApiError("NOT_FOUND", noOrder);
  return Response.json(order);
}

const ledger: Sql = sql`case when ledger.idempotency_key is not null then json_build_object(
        'status', ledger.status, 'http_status', ledger.http_status,
        'reason_code', ledger.reason_code, 'response_payload', ledger.response_payload_json,
        'attempts', ledger.attempts, 'first_sent_at', ${utc(sql`ledger.first_sent_at`)},
        'decided_at', ${utc(sql`ledger.decided_at`)}) end as ledger`;

async function findOrders(database: Database, where: Sql): Promise<Order[]> {
  const rows = await query<Omit<Order, "url"> & { request: string }>(
    database,
    sql`
      select outbox_orders.id as order_id, outbox_orders.status, outbox_orders.adapter,
        order_request_json::text as request, outbox_orders.endpoint_id, outbox_orders.event_id,
        outbox_orders.attempts, last_error_code, last_error_msg,
        case when outbox_orders.status = 'FAILED' then ${utc(sql`next_run_at`)} end as next_run_at,
        ${utc(sql`expires_at`)} as expires_at, ${utc(sql`created_at`)} as created_at,
        ${utc(sql`finished_at`)} as finished_at,
        ${ledger}
      from outbox_orders
      left join idempo_ledger ledger on ledger.idempotency_key = outbox_orders.idempotency_key
      ${where}`,
  );
  return rows.map(({ request, order_id, status, adapter, ...rest }): Order => {
    const { url = null } = readOrderRequest(request);
    return { order_id, status, adapter, url, ...rest } as Order;
  });
}

// An order that retention has deleted.
async function findInLedger(database: Database, key: string): Promise<Order | undefined> {
  const [order] = await query<Order>(
    database,
    sql`
      select order_id, case status when 'SUCCEEDED' then status else 'ABORTED' end as status,
        coalesce(adapter, 'http') as adapter, null as url, null as endpoint_id, null as event_id,
        attempts, reason_code as last_error_code, null as last_error_msg, null as next_run_at,
        null as expires_at, ${utc(sql`coalesce(first_sent_at, decided_at)`)} as created_at,
        ${utc(sql`decided_at`)} as finished_at,
        ${ledger}
      from idempo_ledger ledger
      where idempotency_key = ${key}
        and order_id is not null`,
  );
  return order;
}
