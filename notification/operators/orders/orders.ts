import { z } from "@hono/zod-openapi";
import {
  lastPosition,
  pageFields,
  pageOf,
  type Position,
  positionSchema,
  readCursor,
} from "@kenri/shared/http/cursor.ts";
import { ApiError } from "@kenri/shared/http/errors.ts";
import { textSchema } from "@kenri/shared/http/fields.ts";
import { lookRoute } from "@kenri/shared/operators/look_route.ts";
import { valid } from "@kenri/shared/operators/operations.ts";
import { type Database, query, utc } from "@kenri/shared/postgres/postgres.ts";
import type { Handler } from "hono";
import { findLedgerEntry, ledgerSchema } from "./ledger.ts";

// Orders as operators see them: one with its entry in the ledger, or those of an endpoint. What an
// order sends is never shown, and of an address only its origin, because its path may be a secret of
// the receiver.

const orderSchema = z.object({
  order_id: z.uuid(),
  idempotency_key: z.string(),
  caller: z.string(),
  adapter: z.string(),
  to: z.string().openapi({ description: "The origin of the address" }),
  endpoint_id: z.uuid().nullable(),
  event_id: z.uuid().nullable(),
  event_type: z.string().nullable(),
  user_id: z.string().nullable(),
  status: z.string(),
  attempts: z.int(),
  reason_code: z.string().nullable(),
  message: z.string().nullable(),
  created_at: z.string(),
  next_run_at: z.string().nullable(),
  expires_at: z.string().nullable(),
  first_sent_at: z.string().nullable(),
  finished_at: z.string().nullable(),
  locked_by: z.string().nullable(),
  trace_id: z.string(),
}).openapi("OrderLook");

export type OrderLook = z.infer<typeof orderSchema>;

const answerSchema = z.object({
  orders: z.array(orderSchema),
  ledger: ledgerSchema.nullish().openapi({
    description: "Of one order; it stays after the order was deleted",
  }),
  next_cursor: z.string().optional(),
}).openapi("OrderLooks");

export type OrderLooks = z.infer<typeof answerSchema>;

const statuses = ["PENDING", "SENDING", "SUCCEEDED", "FAILED", "ABORTED", "PARKED"] as const;

const requestSchema = z.object({
  order_id: z.uuid("must be a UUID").optional(),
  idempotency_key: textSchema().optional().openapi({
    description: "The key; with a named caller the name, a space, and the key",
  }),
  endpoint_id: z.uuid("must be a UUID").optional(),
  status: z.enum(statuses, `must be one of ${statuses.join(", ")}`).optional(),
  ...pageFields(),
});

export type OrdersQuery = z.input<typeof requestSchema>;

export const ordersRoute = lookRoute({
  path: "/debug/notification/orders",
  summary: "Orders",
  description: "One order by its id or key, with its entry in the ledger; or those of an endpoint",
  query: requestSchema,
  answer: answerSchema,
  answers: "The newest first; none is no error",
  invalid:
    "Not exactly one of order_id, idempotency_key, endpoint_id is given, or a field is invalid",
});

export function listOrders(database: Database): Handler {
  return async ({ req }) => {
    const asked = valid(requestSchema.safeParse(req.query()));
    const { order_id, idempotency_key, endpoint_id } = asked;
    if ([order_id, idempotency_key, endpoint_id].filter((one) => one !== undefined).length !== 1) {
      const message = "exactly one of order_id, idempotency_key, endpoint_id is required";
      throw new ApiError("BAD_REQUEST", message);
    }
    return Response.json(
      endpoint_id === undefined
        ? await findOrder(database, order_id, idempotency_key)
        : await findOrdersOf(database, { ...asked, endpoint_id }),
    );
  };
}

/** The origin of the address of an order. */
export const destination = `coalesce(
         (select substring(endpoint.url from '^[^:]+://[^/?#]+')
          from endpoints endpoint
          where endpoint.endpoint_id = outbox_orders.endpoint_id),
         lane)`;

const columns = `id as order_id, idempotency_key, caller, adapter, ${destination} as to,
       endpoint_id, event_id, event_type, user_id, status, attempts,
       last_error_code as reason_code, last_error_msg as message,
       ${utc("outbox_orders.created_at")} as created_at, ${utc("next_run_at")} as next_run_at,
       ${utc("expires_at")} as expires_at, ${utc("first_sent_at")} as first_sent_at,
       ${utc("finished_at")} as finished_at, locked_by, trace_id`;

/** What a dead letter of an order shows, as arguments of jsonb_build_object. */
export const orderFacts = `'adapter', adapter, 'to', ${destination}, 'endpoint_id', endpoint_id,
         'event_type', event_type, 'user_id', user_id, 'caller', caller,
         'idempotency_key', idempotency_key, 'expires_at', expires_at`;

async function findOrder(
  database: Database,
  id: string | undefined,
  key: string | undefined,
): Promise<OrderLooks> {
  const orders = await query<OrderLook>(
    database,
    `select ${columns}
     from outbox_orders
     where ${id === undefined ? "idempotency_key" : "id"} = $1`,
    [id ?? key],
  );
  const ledger = await findLedgerEntry(database, key ?? orders[0]?.idempotency_key ?? "");
  return { orders, ledger };
}

async function findOrdersOf(
  database: Database,
  { endpoint_id, status, limit, cursor }: z.output<typeof requestSchema> & { endpoint_id: string },
): Promise<OrderLooks> {
  const [before, id]: Position = readCursor(cursor, positionSchema) ?? lastPosition;
  const found = await query<OrderLook>(
    database,
    `select ${columns}
     from outbox_orders
     where endpoint_id = $1
       and (outbox_orders.created_at, id) < ($2::timestamptz, $3::uuid)
       ${status === undefined ? "" : "and status = $5"}
     order by outbox_orders.created_at desc, id desc
     limit $4`,
    [endpoint_id, before, id, limit + 1, ...status === undefined ? [] : [status]],
  );
  const { rows, next_cursor } = pageOf(
    found,
    limit,
    ({ created_at, order_id }) => [created_at, order_id],
  );
  return { orders: rows, ...next_cursor === undefined ? {} : { next_cursor } };
}
