// The clock of a replica is wrong by an hour. Receivers refuse webhooks that are older than a few
// minutes, so their timestamps must come from the database.
import assert from "node:assert/strict";
import { startService } from "../../tools/servers/service_process.ts";
import { runArguments } from "../../tools/services.ts";
import { settingsOf } from "../support/notification.ts";
import {
  createEndpoint,
  give,
  orderSettings,
  startOrders,
  untilAllAre,
} from "../support/orders.ts";
import { verified } from "../support/receiver.ts";

const preload = new URL("../../tools/chaos/replica_preload.ts", import.meta.url).href;

Deno.test("a webhook has the time of the database, whatever the clock of its sender says", async () => {
  await using stage = await startOrders({ NOTIFICATION_ORDERS_ENABLED: "false" });
  await using worker = await startService(
    "notification",
    { ...settingsOf(stage.place), ...orderSettings(stage.sender) },
    {
      arguments: (name, read) => {
        const [command = "", ...args] = runArguments(name, read);
        return [command, `--preload=${preload}`, ...args];
      },
    },
  );
  worker.signal("SIGUSR2"); // an hour ahead
  const { json: { endpoint_id, secret } } = await createEndpoint(stage, {
    url: `${stage.receiver.url}/hook`,
  });
  const id = await give(stage, { url: undefined, endpoint_id });
  await untilAllAre(stage, ["SUCCEEDED"]);
  const [request, ...more] = stage.receiver.received;
  assert.ok(request && more.length === 0);
  assert.equal(request.headers.get("webhook-id"), id);
  assert.deepEqual(verified(request, secret), JSON.parse(request.body));
});
