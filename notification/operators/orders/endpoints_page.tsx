import type { Child } from "hono/jsx";
import type { JSX } from "hono/jsx/jsx-runtime";
import { pageAnswer } from "@kenri/shared/console/answers.ts";
import { takeNote } from "@kenri/shared/console/forms.ts";
import { type Api, queryOf, type ShowPage } from "@kenri/shared/console/ask.ts";
import {
  ConsolePage,
  Facts,
  NextPage,
  type Site,
  Status,
  Table,
  When,
} from "@kenri/shared/console/layout.tsx";
import { EventLink } from "@kenri/shared/console/search.tsx";
import { ageOf, whole } from "@kenri/shared/console/text.ts";
import type { AttemptLooks } from "./attempts.ts";
import { AttemptsTable } from "./attempts_table.tsx";
import type { EndpointLook, EndpointLooks } from "./endpoints.ts";
import { EndpointLink, endpointsPath, OrderLink, replayPath } from "./links.tsx";
import type { OrderLook, OrderLooks } from "./orders.ts";
import { endpointStates } from "./parked.ts";

// The endpoints with their health, and one with its attempts and what is parked for it.

const shown = "25";

export function endpointsPage(site: Site): ShowPage {
  return async (context, api) => {
    const { req } = context;
    const endpoint_id = req.query("endpoint_id");
    const [state, cursor] = [req.query("state") || undefined, req.query("cursor")];
    const found = endpoint_id ? await oneEndpoint(site, api, endpoint_id, cursor) : (
      <Endpoints
        site={site}
        state={state}
        page={await api.get("/debug/notification/endpoints", { state, cursor })}
      />
    );
    return pageAnswer(
      context,
      <ConsolePage site={site} path={endpointsPath} title="Endpoints" note={takeNote(context)}>
        {found}
      </ConsolePage>,
    );
  };
}

function Endpoints(
  { site, state, page }: { site: Site; state: string | undefined; page: EndpointLooks },
): JSX.Element {
  return (
    <>
      <nav class="tabs" aria-label="States">
        {[undefined, ...endpointStates].map((one) => (
          <a
            href={`${endpointsPath}${queryOf({ state: one })}`}
            aria-current={one === state ? "true" : undefined}
          >
            {one ?? "all"}
          </a>
        ))}
      </nav>
      <Table
        label="Endpoints, the newest first"
        columns={["Endpoint", "To", "Caller", "State", "Since", "Parked", "Last success", "Reason"]}
        rows={page.endpoints.map((endpoint): Child[] => [
          <EndpointLink id={endpoint.endpoint_id} />,
          endpoint.origin,
          endpoint.caller || "–",
          <EndpointState site={site} endpoint={endpoint} />,
          ageOf(endpoint.state_since),
          whole(endpoint.parked),
          <When at={endpoint.last_success_at} />,
          endpoint.last_reason ?? "–",
        ])}
        none="There are no such endpoints."
      />
      <NextPage
        href={page.next_cursor &&
          `${endpointsPath}${queryOf({ state, cursor: page.next_cursor })}`}
      />
    </>
  );
}

function EndpointState({ site, endpoint }: { site: Site; endpoint: EndpointLook }): JSX.Element {
  const { state, is_draining } = endpoint;
  return (
    <>
      <Status site={site} status={state} />
      {is_draining && <span class="muted">sending what was parked</span>}
    </>
  );
}

async function oneEndpoint(
  site: Site,
  api: Api,
  endpoint_id: string,
  cursor: string | undefined,
): Promise<JSX.Element> {
  const [{ endpoints: [endpoint] }, parked, { attempts, next_cursor }] = await Promise.all([
    api.get<EndpointLooks>("/debug/notification/endpoints", { endpoint_id }),
    api.get<OrderLooks>("/debug/notification/orders", {
      endpoint_id,
      status: "PARKED",
      limit: shown,
    }),
    api.get<AttemptLooks>("/debug/notification/attempts", { endpoint_id, cursor, limit: shown }),
  ]);
  return (
    <>
      {endpoint
        ? <EndpointCard site={site} endpoint={endpoint} />
        : <p class="empty">There is no such endpoint, or no longer.</p>}
      <h2>Attempts</h2>
      <AttemptsTable
        label="Attempts to send to this endpoint, the newest first"
        attempts={attempts}
      />
      <NextPage
        href={next_cursor && `${endpointsPath}${queryOf({ endpoint_id, cursor: next_cursor })}`}
      />
      <h2>Parked</h2>
      <ParkedTable orders={parked.orders} />
      <p>
        <a href={endpointsPath}>All endpoints</a>
      </p>
    </>
  );
}

function EndpointCard({ site, endpoint }: { site: Site; endpoint: EndpointLook }): JSX.Element {
  const { event_types, user_id, next_probe_at, description } = endpoint;
  return (
    <article class="card">
      <h2>
        {endpoint.origin} <EndpointState site={site} endpoint={endpoint} />
      </h2>
      <Facts
        facts={[
          ["endpoint", <code>{endpoint.endpoint_id}</code>],
          endpoint.caller !== "" && ["caller", endpoint.caller],
          !!description && ["description", description],
          ["events", event_types === null ? "all" : event_types.join(", ")],
          user_id !== null && ["user", user_id],
          ["ordering", endpoint.ordering],
          ["at once", whole(endpoint.at_once)],
          ["state since", <When at={endpoint.state_since} />],
          ["failures in a row", whole(endpoint.failures)],
          next_probe_at !== null && ["next probe", <When at={next_probe_at} />],
          ["last success", <When at={endpoint.last_success_at} />],
          ["last failure", <When at={endpoint.last_failure_at} />],
          ["last reason", endpoint.last_reason ?? "–"],
          ["parked", whole(endpoint.parked)],
          endpoint.parked > 0 && ["oldest parked", <When at={endpoint.oldest_parked_at} />],
        ]}
      />
      <p>
        <a
          class="button"
          href={`${replayPath}${queryOf({ endpoint_id: endpoint.endpoint_id })}`}
        >
          Send again…
        </a>
      </p>
    </article>
  );
}

function ParkedTable({ orders }: { orders: OrderLook[] }): JSX.Element {
  return (
    <Table
      label="Parked orders, the newest first"
      columns={["Ordered", "Order", "Type", "Event", "Attempts", "Last reason"]}
      rows={orders.map((order): Child[] => [
        <When at={order.created_at} />,
        <OrderLink id={order.order_id} />,
        <span class="word">{order.event_type ?? "–"}</span>,
        <EventLink id={order.event_id} />,
        order.attempts,
        order.reason_code ?? "–",
      ])}
      none="Nothing is parked for this endpoint."
    />
  );
}
