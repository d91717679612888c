import {
  type Call,
  type OwnCommand,
  text,
  UsageError,
  wholeNumber,
} from "@kenri/shared/ops/command.ts";
import type { Figures } from "@kenri/shared/operators/looks.ts";
import { type NoFields, reads, type ServiceApi } from "@kenri/shared/ops/service_api.ts";
import { age, ago, count, list, table, time } from "@kenri/shared/ops/text.ts";
import type { DeliveryStatus } from "../status.ts";
import type { AttemptLook, AttemptLooks, AttemptsQuery } from "./attempts.ts";
import type { LedgerLook } from "./ledger.ts";
import type { OrderLook, OrderLooks, OrdersQuery } from "./orders.ts";

// The commands of `ops` for orders. `orders late` is the command of their queue.

const statusRoute = reads<NoFields, DeliveryStatus>("status");
const ordersRoute = reads<OrdersQuery, OrderLooks>("orders");
const attemptsRoute = reads<AttemptsQuery, AttemptLooks>("attempts");

type OrderStatus = DeliveryStatus["orders"];

const countedAtMost = 10_000;
const lateSeconds = 60;

export function orderFigures({ parked, oldest_parked_seconds, endpoints }: OrderStatus): Figures {
  const number = parked < countedAtMost ? `${parked}` : `${parked} or more`;
  const states = Object.entries(endpoints).filter(([, count]) => count > 0);
  return {
    "orders parked": parked === 0 ? 0 : `${number}, the oldest ${age(oldest_parked_seconds)} old`,
    "endpoints": states.length === 0
      ? "none"
      : states.map(([state, count]) => `${count} ${state}`).join(", "),
  };
}

// One that is DISABLED or GONE waits for its owner, and is no problem of an operator.
export function endpointProblems({ endpoints: { FAILING } }: OrderStatus): string[] {
  if (FAILING === 0) return [];
  return [`${count(FAILING, "endpoint")} can't be reached: ops endpoints --state FAILING`];
}

export const orders: OwnCommand = {
  usage:
    "orders [ORDER_ID | --key KEY [--caller NAME] | --endpoint ID [--status STATUS] [--limit N]]",
  words: 1,
  summary: "Show how orders stand, one with all its attempts, or those of an endpoint",
  options: {
    key: { type: "string" },
    caller: { type: "string" },
    endpoint: { type: "string" },
    status: { type: "string" },
    limit: { type: "string" },
  },
  help: `
  ORDER_ID        one order: its entry in the ledger, and its last attempts with the answers
  --key KEY       the same by its Idempotency-Key
  --caller NAME   whose key it is, if callers need credentials: each caller has keys of its own
  --endpoint ID   the newest orders of an endpoint
  --status STATUS only PENDING, SENDING, SUCCEEDED, FAILED, ABORTED or PARKED ones
  --limit N       at most N orders or attempts; default: 20

Without any of them: how many orders wait, how many are parked, and how many failed for good. Exit code
1 if one has been due for over a minute, if one failed for good, or if the order is not known. What an
order sends is not shown.`,
  run: (service, call) => {
    const [order_id] = call.positionals;
    const [key, caller] = [text(call.values["key"]), text(call.values["caller"])];
    const endpoint_id = text(call.values["endpoint"]);
    const given = [order_id, key, endpoint_id].filter((one) => one !== undefined);
    if (given.length > 1) {
      throw new UsageError("only one of ORDER_ID, --key, --endpoint is allowed");
    }
    if (endpoint_id !== undefined) return ofEndpoint(service, call, endpoint_id);
    if (order_id !== undefined) return oneOrder(service, call, { order_id });
    if (key === undefined) return overview(service);
    const idempotency_key = caller === undefined ? key : `${caller} ${key}`;
    return oneOrder(service, call, { idempotency_key });
  },
};

async function overview(service: ServiceApi) {
  const { orders, errors } = await service.ask(statusRoute, {});
  const dead = errors.filter(({ layer }) => layer === "order");
  const failed = dead.reduce((sum, { count }) => sum + count, 0);
  const { waiting, oldest_waiting_seconds: seconds } = orders;
  const problems = [
    ...(seconds !== null && seconds > lateSeconds ? ["orders are late: ops orders late"] : []),
    ...(failed > 0 ? ["orders failed for good: ops dead list --layer order"] : []),
    ...endpointProblems(orders),
  ];
  return {
    problem: problems.length > 0,
    json: { ...orders, failed },
    text: [
      list({
        "due orders waiting": waiting === 0 ? "0" : `${waiting}, the oldest for ${age(seconds)}`,
        ...orderFigures(orders),
        "failed for good": failed,
      }),
      "",
      ...(problems.length > 0 ? problems.map((problem) => `! ${problem}`) : ["All is well."]),
    ].join("\n"),
  };
}

async function ofEndpoint(service: ServiceApi, call: Call, endpoint_id: string) {
  const status = text(call.values["status"]) as OrderLook["status"] | undefined;
  const limit = wholeNumber(call, "limit", 200) ?? 20;
  const query = { endpoint_id, limit, ...(status === undefined ? {} : { status }) } as OrdersQuery;
  const { orders, next_cursor } = await service.ask(ordersRoute, query);
  return {
    problem: false,
    json: { orders },
    text: orders.length === 0 ? "This endpoint has no such orders." : [
      table(orders, {
        "ORDERED": ({ created_at }) => time(created_at),
        "ORDER_ID": ({ order_id }) => order_id,
        "TYPE": ({ event_type }) => event_type,
        "STATUS": ({ status }) => status,
        "ATTEMPTS": ({ attempts }) => attempts,
        "NEXT TRY": ({ next_run_at, status }) => status === "FAILED" ? time(next_run_at) : null,
        "REASON": ({ reason_code }) => reason_code,
      }),
      ...(next_cursor === undefined ? [] : ["… and more: use --limit"]),
    ].join("\n"),
  };
}

async function oneOrder(
  service: ServiceApi,
  call: Call,
  asked: { order_id: string } | { idempotency_key: string },
) {
  const limit = wholeNumber(call, "limit", 200) ?? 20;
  const { orders: [order], ledger } = await service.ask(ordersRoute, asked);
  const { attempts } = order
    ? await service.ask(attemptsRoute, { order_id: order.order_id, limit })
    : { attempts: [] };
  return {
    problem: !order && !ledger,
    json: { order: order ?? null, ledger: ledger ?? null, attempts },
    text: [
      order ? factsOf(order) : "No such order is known.",
      ...(ledger ? ["", ledgerLine(ledger)] : []),
      ...(attempts.length > 0 ? ["", attemptTable(attempts)] : []),
    ].join("\n"),
  };
}

function factsOf(order: OrderLook): string {
  const { next_run_at, status, expires_at } = order;
  return list({
    order: order.order_id,
    to: order.to,
    endpoint: order.endpoint_id ?? undefined,
    event: order.event_id ?? undefined,
    type: order.event_type ?? undefined,
    caller: order.caller || undefined,
    status,
    attempts: order.attempts,
    reason: order.reason_code ?? undefined,
    message: order.message ?? undefined,
    ordered: time(order.created_at),
    "next try": status === "FAILED" ? time(next_run_at) : undefined,
    expires: expires_at === null ? undefined : time(expires_at),
    finished: order.finished_at === null ? undefined : time(order.finished_at),
    trace: order.trace_id,
  });
}

function ledgerLine(
  { status, http_status, reason_code, attempts, decided_at }: LedgerLook,
): string {
  const what = [status, http_status, reason_code].filter((part) => part !== null).join(" ");
  return `The ledger says ${what}, after ${count(attempts, "failed attempt")}, ${ago(decided_at)}.`;
}

/** The newest first. */
export function attemptTable(attempts: AttemptLook[]): string {
  return table(attempts, {
    "TIME": ({ ended_at }) => time(ended_at),
    "OUTCOME": ({ outcome }) => outcome,
    "HTTP": ({ http_status }) => http_status,
    "REASON": ({ reason_code }) => reason_code,
    "": ({ error, who, reason }) => error ?? (who ? `by ${who}: ${reason}` : ""),
  });
}
