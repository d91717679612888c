import { freePort } from "../../tools/servers/free_port.ts";
import { grant, revoke } from "../support/api.ts";
import {
  insertAttempt,
  insertEndpoint,
  insertLedgerEntry,
  insertOrder,
} from "../operators/order_rows.ts";
import { countsOf, untilSent } from "../support/notification.ts";
import { grantPoints, inMs, reserve, spendPoints, untilAllAre } from "../support/points.ts";
import { failingSends, look, type Stack, startStack } from "../support/stack.ts";
import { until } from "../../tools/servers/wait.ts";

/** Starts both consoles with something on each page. One of the dead letters is of the event. */
export async function startConsoles(): Promise<
  { stack: Stack; eventId: string; pagesOfOrders: string[] }
> {
  const [first, second] = [freePort(), freePort()];
  const stack = await startStack({
    entitlement: {
      ENTITLEMENT_HTTP_PORT: `${first}`,
      ENTITLEMENT_POINTS_MAX_BALANCE: "1000",
      ENTITLEMENT_CONSOLE_PEER_URL: `notification=http://127.0.0.1:${second}`,
    },
    notification: {
      ...failingSends,
      NOTIFICATION_HTTP_PORT: `${second}`,
      NOTIFICATION_CONSOLE_PEER_URL: `entitlement=http://127.0.0.1:${first}`,
    },
  });
  const { entitlement, notification, place } = stack;
  for (const user_id of ["unlucky-bob", "unlucky-eve", `unlucky-${"long".repeat(40)}`]) {
    await grant(entitlement.url, { user_id }, `purchase-of-${user_id.slice(0, 11)}`);
  }
  for (const change of [grant, revoke, grant]) await change(entitlement.url, { user_id: "ann" });
  await untilSent(place, 3);
  await givePoints(stack);
  await until("there are dead letters", async () => (await countsOf(place)).notification_dlq === 3);
  const { events: [event] } = await look(
    notification.url,
    "/debug/notification/timeline?user_id=unlucky-bob",
  );
  return { stack, eventId: event.event_id, pagesOfOrders: await failOrders(place.ownerUrl) };
}

/** An endpoint in each state, and one that has tried and parked something. Returns their pages. */
async function failOrders(ownerUrl: string): Promise<string[]> {
  for (const state of ["ACTIVE", "PAUSED", "DISABLED", "GONE"] as const) {
    await insertEndpoint(ownerUrl, { state });
  }
  const endpointId = await insertEndpoint(ownerUrl, {
    ...{ state: "FAILING", description: "the shop", url: "https://shop.example/hooks" },
  });
  await insertOrder(ownerUrl, { endpoint_id: endpointId, status: "PARKED" });
  const dead = { endpoint_id: endpointId, status: "ABORTED", reason: "SERVER_ERROR" } as const;
  const orderId = await insertOrder(ownerUrl, dead);
  for (const outcome of ["RETRIED", "GAVE_UP"]) {
    await insertAttempt(ownerUrl, { order_id: orderId, endpoint_id: endpointId, outcome });
  }
  await insertLedgerEntry(ownerUrl, orderId);
  const replay = `/console/endpoints/replay?endpoint_id=${endpointId}`;
  return [
    ...["/console/orders", `/console/orders?order_id=${orderId}`, "/console/endpoints"],
    ...[`/console/endpoints?endpoint_id=${endpointId}`, replay],
    `${replay}&from=2020-01-01T00:00:00Z`,
  ];
}

/** For each state of a reservation one that has it, except for those that are being carried out. */
async function givePoints({ entitlement: { url, database }, place }: Stack): Promise<void> {
  const ann = { user_id: "ann", reason: "campaign", source_id: "summer" };
  await grantPoints(url, { ...ann, point_amount: 500 });
  await spendPoints(url, { ...ann, point_amount: 20, reason: "purchase" });
  await reserve(url, { ...ann, execute_at: inMs(0) });
  await reserve(url, { ...ann, point_amount: 900, execute_at: inMs(0) }); // over the limit
  await untilAllAre(database.ownerUrl, ["DONE", "FAILED"]);
  await untilSent(place, 6);
  for (const user_id of ["ann", `unlucky-${"long".repeat(40)}`]) {
    await reserve(url, { ...ann, user_id, execute_at: inMs(3_600_000) });
  }
}
