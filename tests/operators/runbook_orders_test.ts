// The sections of docs/runbook.md for orders and endpoints.
import assert from "node:assert/strict";
import { until } from "../../tools/servers/wait.ts";
import { act, make } from "../support/endpoints.ts";
import { give, startOrders, untilAllAre } from "../support/orders.ts";
import { runCommand } from "./runbook.ts";

const notSent = "Orders are not sent";
const fails = "An endpoint fails";

Deno.test("orders that wait for a sender are found with the commands of the runbook, and sent when it is back", async () => {
  await using stage = await startOrders({ NOTIFICATION_ORDERS_ENABLED: "false" });
  const settings = { NOTIFICATION_HTTP_PORT: new URL(stage.url).port, USER: "kim" };
  const id = await give(stage, { url: stage.receiver.url });
  await stage.rows("update outbox_orders set next_run_at = now() - interval '2 minutes'");
  const overview = await runCommand(notSent, 0, settings, 1);
  assert.match(overview, /due orders waiting +1, the oldest for 2 min\n/);
  assert.match(overview, /! orders are late: ops orders late/);
  assert.match(await runCommand(notSent, 1, settings), new RegExp(`${id}.* PENDING`));
  await using _worker = await stage.replica({
    NOTIFICATION_ORDERS_ENABLED: "true",
    NOTIFICATION_HTTP_PORT: "0",
  });
  await untilAllAre(stage, ["SUCCEEDED"]);
  assert.match(await runCommand(notSent, 2, settings), /Nothing is waiting/);
});

Deno.test("orders that fail are found with the commands of the runbook, and sent back", async () => {
  await using stage = await startOrders({ NOTIFICATION_ORDERS_MAX_ATTEMPTS: "1" });
  const { receiver } = stage;
  const settings = { NOTIFICATION_HTTP_PORT: new URL(stage.url).port, USER: "kim" };
  receiver.behave(503);
  const id = await give(stage, { url: receiver.url });
  await untilAllAre(stage, ["ABORTED"]);
  const one = { ...settings, ORDER_ID: id };
  // The entitlement service is away, so counting the dead letters of all services fails in the end.
  const found = await runCommand("Orders fail", 0, { ...one, ENTITLEMENT_HTTP_PORT: "1" }, 3);
  assert.match(found, /order +1 +.* SERVER_ERROR/);
  assert.match(await runCommand("Where is one event?", 2, one), /GAVE_UP +503 +SERVER_ERROR/);
  receiver.behave(200);
  const those = { ...settings, LAYER: "order", ERROR: "SERVER_ERROR" };
  assert.match(await runCommand("Dead letters", 2, those), /1 dead letter sent back/);
  await untilAllAre(stage, ["SUCCEEDED"]);
});

Deno.test("an endpoint that can't be reached is found with the commands of the runbook", async () => {
  await using stage = await startOrders({
    NOTIFICATION_ENDPOINTS_FAILURES_TO_PARK: "1",
    NOTIFICATION_ENDPOINTS_PROBE_MIN: "1h",
    NOTIFICATION_ENDPOINTS_PROBE_MAX: "1h",
  });
  const { receiver } = stage;
  const { endpoint_id } = await make(stage);
  const settings = { NOTIFICATION_HTTP_PORT: new URL(stage.url).port, USER: "kim" };
  const one = { ...settings, ENDPOINT_ID: endpoint_id };
  await receiver.stop();
  const id = await give(stage, { endpoint_id });
  await untilAllAre(stage, ["PARKED"]);
  assert.match(await runCommand(fails, 0, settings, 1), new RegExp(`${endpoint_id} .*FAILING`));
  assert.match(await runCommand(fails, 1, one, 1), /CONNECTION_FAILED/);
  assert.match(await runCommand(fails, 2, one), new RegExp(`${id} .*PARKED`));
  await receiver.start();
  assert.equal((await act(stage, endpoint_id, "resume")).status, 200);
  await until("it is sent", () => Promise.resolve(receiver.received.length === 1));
  assert.match(await runCommand(fails, 3, settings), /There are no such endpoints/);
});
