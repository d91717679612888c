import { freePort } from "../../tools/servers/free_port.ts";
import { grant, revoke } from "../support/api.ts";
import { countsOf, untilSent } from "../support/notification.ts";
import { failingSends, look, type Stack, startStack } from "../support/stack.ts";
import { until } from "../../tools/servers/wait.ts";

/** Starts both consoles with something on each page. One of the dead letters is of the event. */
export async function startConsoles(): Promise<{ stack: Stack; eventId: string }> {
  const [first, second] = [freePort(), freePort()];
  const stack = await startStack({
    entitlement: {
      ENTITLEMENT_HTTP_PORT: `${first}`,
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
  await until("there are dead letters", async () => (await countsOf(place)).notification_dlq === 3);
  const { events: [event] } = await look(
    notification.url,
    "/debug/notification/timeline?user_id=unlucky-bob",
  );
  return { stack, eventId: event.event_id };
}
