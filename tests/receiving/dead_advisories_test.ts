// Messages that JetStream no longer delivers are dead letters as well. They are shown decoded, and
// they can be received again from their copies.
import assert from "node:assert/strict";
import { ofNotification, outcomes, sendBack, untilDead } from "../operators/dead_letters.ts";
import { ask } from "../support/entitlement.ts";
import { eventOf, messageOf } from "../support/events.ts";
import { countsOf, publishRaw } from "../support/notification.ts";
import { look, operate, startStack } from "../support/stack.ts";
import { until } from "../../tools/servers/wait.ts";

Deno.test("a captured message is received again from its copy, and not twice if it was received meanwhile", async () => {
  await using stack = await startStack({ notification: { NOTIFICATION_NATS_MAX_DELIVER: "1" } });
  const { notification, place } = stack;
  // PostgreSQL refuses them until the constraint is dropped.
  await ask(place.ownerUrl, "alter table notifications add check (user_id not like 'unlucky%')");
  const events = ["unlucky-1", "unlucky-2"].map((userId) => eventOf({ userId }));
  await publishRaw(
    place,
    events.map((event) => ({
      ...messageOf(event),
      headers: { "Nats-Msg-Id": event.eventId },
    })),
  );
  const list = `${ofNotification}?layer=advisory`;
  const dead = await untilDead(notification.url, list, 2);
  assert.deepEqual(dead.map(({ error }) => error), ["MAX_DELIVERIES", "MAX_DELIVERIES"]);
  assert.deepEqual(
    dead.map(({ payload }) => payload.user_id).sort(),
    ["unlucky-1", "unlucky-2"],
    "its payload is decoded",
  );
  const ids = dead.map(({ id }) => id);
  const refused = await operate(notification.url, sendBack, { layer: "advisory", ids });
  assert.deepEqual([refused.operation_id, outcomes(refused)], [null, ["REFUSED", "REFUSED"]]);
  assert.match(refused.dead_letters[0].why, /violates check constraint/);

  await ask(
    place.ownerUrl,
    "alter table notifications drop constraint notifications_user_id_check",
  );
  await publishRaw(place, [messageOf(events[0])]); // is received after all, without being sent back
  await until("it is sent", async () => (await countsOf(place)).sent === 1);
  const both = await Promise.all(
    [1, 2].map(() => operate(notification.url, sendBack, { layer: "advisory", ids })),
  );
  assert.deepEqual(both.map(outcomes).flat().sort(), [
    ...["NOT_DEAD", "NOT_DEAD"],
    ...["SENT_BACK", "SENT_BACK"],
  ]);
  await until("both are sent", async () => (await countsOf(place)).sent === 2);
  assert.equal((await countsOf(place)).notifications, 2);
  assert.deepEqual((await look(notification.url, list)).dead_letters, []);
  assert.equal((await countsOf(place)).notification_nats_dlq, 2, "the copies are kept");
  const { operations } = await look(notification.url, "/debug/notification/operations");
  const items = operations.flatMap(({ items }: { items: unknown[] }) => items);
  assert.deepEqual(
    items.map(({ from, event_id }: Record<string, unknown>) => [from, event_id]).sort(),
    events.map(({ eventId }) => ["MAX_DELIVERIES", eventId]).sort(),
  );
});

Deno.test("an unreadable message stays a dead letter, which shows its original bytes", async () => {
  await using stack = await startStack();
  const { notification, place } = stack;
  const bad = messageOf({ eventId: "no UUID" });
  await publishRaw(place, [{ ...bad, headers: { "Nats-Msg-Id": "m-1" } }]);
  const list = `${ofNotification}?layer=advisory`;
  const [dead] = await untilDead(notification.url, list, 1);
  assert.equal(dead?.event_id, "m-1");
  assert.equal(dead?.payload.unreadable, "event_id is not a UUID");
  assert.equal(dead?.payload.body_base64, bad.body.toBase64());
  const answer = await operate(notification.url, sendBack, { layer: "advisory", ids: [dead?.id] });
  assert.deepEqual(outcomes(answer), ["REFUSED"]);
  assert.equal(answer.dead_letters[0].why, "event_id is not a UUID");
  assert.equal((await look(notification.url, list)).dead_letters.length, 1);
});
