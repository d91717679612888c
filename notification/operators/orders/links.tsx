import type { JSX } from "hono/jsx/jsx-runtime";
import { queryOf } from "@kenri/shared/console/ask.ts";

// The paths of the pages of orders and endpoints, and the links to them.

export const ordersPath = "/console/orders";
export const endpointsPath = "/console/endpoints";
export const replayPath = `${endpointsPath}/replay`;

export function OrderLink({ id }: { id: string }): JSX.Element {
  return (
    <a href={`${ordersPath}${queryOf({ order_id: id })}`}>
      <code>{id}</code>
    </a>
  );
}

export function EndpointLink({ id }: { id: string | null }): JSX.Element {
  if (id === null) return <span class="muted">–</span>;
  return (
    <a href={`${endpointsPath}${queryOf({ endpoint_id: id })}`}>
      <code>{id}</code>
    </a>
  );
}
