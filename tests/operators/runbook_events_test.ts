// The sections of docs/runbook.md for events and notifications that did not arrive.
import assert from "node:assert/strict";
import { grant } from "../support/api.ts";
import { ask } from "../support/entitlement.ts";
import { countsOf, startNotification, untilAllAcked, untilSent } from "../support/notification.ts";
import { blocksOf, runCommand, runQuery, runShell } from "./runbook.ts";
import { failingSends, startStack } from "../support/stack.ts";
import { until } from "../../tools/servers/wait.ts";

Deno.test("dead letters and missing events are repaired with the commands of the runbook", async () => {
  const shortWindow = {
    ENTITLEMENT_NATS_DUPLICATE_WINDOW: "100ms",
    NOTIFICATION_NATS_DUPLICATE_WINDOW: "100ms",
  };
  await using stack = await startStack({
    entitlement: shortWindow,
    notification: { ...failingSends, ...shortWindow },
  });
  const { entitlement, notification, place } = stack;
  const settings = {
    ENTITLEMENT_HTTP_PORT: new URL(entitlement.url).port,
    NOTIFICATION_HTTP_PORT: new URL(notification.url).port,
    USER: "kim",
  };
  await grant(entitlement.url, { user_id: "ann" }, "purchase-1");
  await grant(entitlement.url, { user_id: "unlucky-bob" }, "purchase-2");
  await until("one is dead", async () => (await countsOf(place)).notification_dlq === 1);
  await untilSent(place, 1);
  await untilAllAcked(place);

  const [event] = await ask<{ event_id: string }>(
    place.ownerUrl,
    "select event_id from notifications where user_id = 'unlucky-bob'",
  );
  const one = { KEY: "purchase-2", USER_ID: "unlucky-bob", EVENT_ID: event?.event_id ?? "" };
  assert.match(await runCommand("Where is one event?", 0, { ...settings, ...one }), /GAVE_UP/);

  assert.match(await runCommand("Dead letters", 0, settings), /delivery +1 /);
  await notification.stop();
  await using repaired = await startNotification(place, {
    ...shortWindow,
    NOTIFICATION_DEBUG_ENABLED: "true",
    NOTIFICATION_HTTP_PORT: settings.NOTIFICATION_HTTP_PORT,
  });
  const those = { ...settings, LAYER: "delivery", ERROR: "Failure injected for this user" };
  assert.match(await runCommand("Dead letters", 1, those), /1 dead letter would be sent back/);
  assert.match(await runCommand("Dead letters", 2, those), /1 dead letter sent back/);
  await untilSent(place, 2);
  assert.match(await runCommand("Dead letters", 3, settings), /There are no dead letters/);
  assert.match(await runCommand("The channel fails", 0, settings), /Nothing is waiting/);
  assert.match(await runCommand("Notifications are late", 0, settings), /Nothing is waiting/);
  assert.match(await runCommand("Notifications are late", 1, settings), /Nothing is waiting/);
  assert.deepEqual(await runQuery("Notifications are late", 0, place.ownerUrl), []);

  const missing = "Events are missing";
  assert.match(await runCommand(missing, 0, settings), /last check/);
  for (const table of ["notifications", "processed_events"]) {
    await ask(place.ownerUrl, `delete from ${table} where event_id = $1`, [one.EVENT_ID]);
  }
  // The grace is zero, because otherwise an event published just now would count as on its way.
  const reconcile = (nth: number, expectedCode: number) =>
    runShell(`${blocksOf(missing, "sh")[nth]?.trim()} --grace 0`, settings, expectedCode);
  assert.match(await reconcile(1, 1), /1 event would be republished/);
  await reconcile(2, 1);
  await untilSent(place, 2);
  assert.match(await reconcile(3, 0), /Every change was received/);
  assert.equal(await repaired.stop(), 0);
});
