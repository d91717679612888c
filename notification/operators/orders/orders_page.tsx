import type { JSX } from "hono/jsx/jsx-runtime";
import { pageAnswer } from "@kenri/shared/console/answers.ts";
import { type Api, type ShowPage } from "@kenri/shared/console/ask.ts";
import {
  ConsolePage,
  Facts,
  Json,
  type Site,
  State,
  Status,
  When,
} from "@kenri/shared/console/layout.tsx";
import { EventLink, SearchField, TimelineLink } from "@kenri/shared/console/search.tsx";
import { age, shortKey, whole } from "@kenri/shared/console/text.ts";
import { WaitingTable } from "@kenri/shared/console/waiting_table.tsx";
import type { DeliveryStatus } from "../status.ts";
import type { AttemptLooks } from "./attempts.ts";
import { AttemptsTable } from "./attempts_table.tsx";
import type { LedgerLook } from "./ledger.ts";
import { EndpointLink, ordersPath } from "./links.tsx";
import type { OrderLook, OrderLooks } from "./orders.ts";

// How orders stand, and one order with its entry in the ledger and its attempts.

const shownAttempts = "50";

export function ordersPage(site: Site): ShowPage {
  return async (context, api) => {
    const { req } = context;
    const order_id = req.query("order_id");
    const idempotency_key = req.query("idempotency_key");
    const found = order_id || idempotency_key
      ? <OneOrder site={site} {...await readOrder(api, { order_id, idempotency_key })} />
      : <Waiting {...(await api.get<DeliveryStatus>("/debug/notification/status")).orders} />;
    return pageAnswer(
      context,
      <ConsolePage site={site} path={ordersPath} title="Orders">
        <form class="search" method="get" action={ordersPath} role="search">
          <SearchField id="order_id" label="Order id" value={order_id ?? ""} maxlength={36} />
          <button type="submit">Find</button>
        </form>
        <form class="search" method="get" action={ordersPath} role="search">
          <SearchField
            id="idempotency_key"
            label="Idempotency key, after the caller's name and a space"
            value={idempotency_key ?? ""}
            maxlength={600}
          />
          <button type="submit">Find</button>
        </form>
        {found}
      </ConsolePage>,
    );
  };
}

interface Found {
  order: OrderLook | undefined;
  ledger: LedgerLook | null | undefined;
  attempts: AttemptLooks["attempts"];
}

async function readOrder(
  api: Api,
  asked: { order_id?: string | undefined; idempotency_key?: string | undefined },
): Promise<Found> {
  const { orders: [order], ledger } = await api.get<OrderLooks>(
    "/debug/notification/orders",
    asked.order_id ? { order_id: asked.order_id } : { idempotency_key: asked.idempotency_key },
  );
  const { attempts } = order
    ? await api.get<AttemptLooks>("/debug/notification/attempts", {
      order_id: order.order_id,
      limit: shownAttempts,
    })
    : { attempts: [] };
  return { order, ledger, attempts };
}

function Waiting(orders: DeliveryStatus["orders"]): JSX.Element {
  const { waiting, oldest_waiting_seconds, parked, oldest_parked_seconds, oldest } = orders;
  return (
    <>
      <Facts
        facts={[
          ["due and waiting", whole(waiting)],
          ["oldest", age(oldest_waiting_seconds)],
          ["parked", parked < 10_000 ? whole(parked) : `${whole(parked)} or more`],
          ["oldest parked", age(oldest_parked_seconds)],
        ]}
      />
      <h2>Late</h2>
      <WaitingTable noun="due order" rows={oldest} />
    </>
  );
}

function OneOrder({ site, order, ledger, attempts }: Found & { site: Site }): JSX.Element {
  return (
    <>
      {order
        ? <OrderCard site={site} order={order} />
        : <p class="empty">There is no such order, or no longer.</p>}
      {ledger && <LedgerCard ledger={ledger} />}
      {order && (
        <>
          <h2>Attempts</h2>
          <AttemptsTable label="Attempts of this order, the newest first" attempts={attempts} />
        </>
      )}
    </>
  );
}

function OrderCard({ site, order }: { site: Site; order: OrderLook }): JSX.Element {
  const { order_id, endpoint_id, event_id, status, next_run_at, expires_at } = order;
  return (
    <article class="card">
      <h2>
        {order.event_type ?? "Order"} to {order.to} <Status site={site} status={status} />
      </h2>
      {order.message && <p class="bad error">{order.reason_code}: {order.message}</p>}
      <Facts
        facts={[
          ["order", <TimelineLink of={{ order_id }} />],
          endpoint_id !== null && ["endpoint", <EndpointLink id={endpoint_id} />],
          event_id !== null && ["event", <EventLink id={event_id} />],
          order.user_id !== null && ["user", order.user_id],
          order.caller !== "" && ["caller", order.caller],
          event_id === null && ["idempotency key", <code>{shortKey(keyOf(order))}</code>],
          ["trace", <code>{order.trace_id}</code>],
          ["failed attempts", order.attempts],
          ["ordered", <When at={order.created_at} />],
          status === "FAILED" && ["next attempt", <When at={next_run_at} />],
          expires_at !== null && ["expires", <When at={expires_at} />],
          order.first_sent_at !== null && ["first sent", <When at={order.first_sent_at} />],
          order.finished_at !== null && ["finished", <When at={order.finished_at} />],
        ]}
      />
    </article>
  );
}

function keyOf({ caller, idempotency_key }: OrderLook): string {
  return caller === "" ? idempotency_key : idempotency_key.slice(caller.length + 1);
}

function LedgerCard({ ledger }: { ledger: LedgerLook }): JSX.Element {
  const { status, http_status, reason_code, attempts, response } = ledger;
  return (
    <section class="card">
      <h2>
        Ledger <State tone={status === "SUCCEEDED" ? "good" : "bad"} word={status} />
      </h2>
      <Facts
        facts={[
          ["HTTP status", http_status ?? "–"],
          reason_code !== null && ["reason", reason_code],
          ["failed attempts", attempts],
          ["first sent", <When at={ledger.first_sent_at} />],
          ["decided", <When at={ledger.decided_at} />],
        ]}
      />
      {response !== null && <Json value={response} label="What the receiver answered" />}
    </section>
  );
}
