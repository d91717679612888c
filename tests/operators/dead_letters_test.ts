// Dead letters of all layers are listed in one form. Sending them back has effect once, and is
// logged.
import assert from "node:assert/strict";
import { assertError, call, grant } from "../support/api.ts";
import {
  type DeadLetter,
  ofEntitlement,
  ofNotification,
  outcomes,
  sendBack,
  sendBackEvents,
  untilDead,
} from "./dead_letters.ts";
import { ask } from "../support/entitlement.ts";
import { countsOf, notificationsOf, startNotification } from "../support/notification.ts";
import { insertEvents } from "../support/outbox.ts";
import { failingSends, look, operate, startStack } from "../support/stack.ts";
import { until } from "../../tools/servers/wait.ts";

Deno.test("an event that FAILED is sent back once it can be published, and only once", async () => {
  await using stack = await startStack();
  const { entitlement, notification, place } = stack;
  const [id = ""] = await insertEvents(entitlement.database.ownerUrl, [
    { key: "ann:book", version: 1, payload: { event_type: "unknown" } },
  ]);
  const [dead] = await untilDead(entitlement.url, ofEntitlement, 1);
  assert.deepEqual(
    [dead?.layer, dead?.id, dead?.event_id, dead?.error, dead?.payload],
    ["outbox", id, id, "event_type is unknown", { event_type: "unknown" }],
  );
  await entitlement.rows(
    `update outbox_events set payload = jsonb_build_object(
       'event_id', event_id, 'event_type', 'EntitlementGranted',
       'occurred_at', '2026-01-02T03:04:05Z', 'user_id', 'ann', 'stock_keeping_unit', 'book',
       'source', 's', 'source_id', 'p', 'version', 1, 'trace_id', 't')`,
  );
  const dry = await operate(entitlement.url, sendBackEvents, { ids: [id], dry_run: true });
  assert.deepEqual([dry.operation_id, outcomes(dry)], [null, ["WOULD_BE_SENT_BACK"]]);
  assert.equal((await untilDead(entitlement.url, ofEntitlement, 1)).length, 1, "still there");

  const both = await Promise.all(
    [1, 2].map(() => operate(entitlement.url, sendBackEvents, { ids: [id] })),
  );
  assert.deepEqual(both.map(outcomes).flat().sort(), ["NOT_DEAD", "SENT_BACK"], "two at once");
  await until("it is sent", async () => (await countsOf(place)).sent === 1);
  assert.deepEqual((await look(entitlement.url, ofEntitlement)).dead_letters, []);

  const { operations } = await look(entitlement.url, "/debug/entitlement/operations");
  assert.equal(operations.length, 1);
  const [{ kind, layer, who, reason, items }] = operations;
  assert.deepEqual([kind, layer, who, reason], [
    "SEND_BACK",
    "outbox",
    "kim",
    "the channel is back",
  ]);
  assert.deepEqual(items, [{ event_id: id, from: "FAILED", error: "event_type is unknown" }]);
  const { events: [event] } = await look(
    notification.url,
    `/debug/notification/timeline?event_id=${id}`,
  );
  assert.equal(event.status, "SENT");
});

Deno.test("failed deliveries of one error are sent back page by page, and the others stay", async () => {
  await using stack = await startStack({ notification: failingSends });
  const { entitlement, notification, place } = stack;
  for (let i = 0; i < 7; i++) await grant(entitlement.url, { user_id: `unlucky-${i}` });
  const dead = await untilDead(notification.url, ofNotification, 7);
  const [other] = dead;
  await ask(
    place.ownerUrl,
    "update notification_dlq set error_message = 'other' where dlq_id = $1",
    [
      other?.id,
    ],
  );
  const error = dead[1]?.error;
  const { errors } = await look(notification.url, `${ofNotification}/errors`);
  assert.deepEqual(
    errors.map(({ layer, error, count }: Record<string, unknown>) => [layer, error, count]),
    [["delivery", error, 6], ["delivery", "other", 1]],
  );

  await notification.stop();
  await using healed = await startNotification(place, { NOTIFICATION_DEBUG_ENABLED: "true" });
  let pages = 0;
  let cursor: string | undefined;
  do {
    const answer = await operate(healed.url, sendBack, {
      layer: "delivery",
      error,
      limit: 4,
      cursor,
    });
    assert.ok(outcomes(answer).every((outcome) => outcome === "SENT_BACK"));
    cursor = answer.next_cursor;
    pages++;
  } while (cursor !== undefined);
  assert.equal(pages, 2);
  await until("six are sent", async () => (await countsOf(place)).sent === 6);
  const left = await look(healed.url, ofNotification);
  assert.deepEqual(left.dead_letters.map(({ id }: DeadLetter) => id), [other?.id]);
  const again = await operate(healed.url, sendBack, { layer: "delivery", ids: [dead[1]?.id] });
  assert.deepEqual([again.operation_id, outcomes(again)], [null, ["NOT_DEAD"]]);
  assert.equal((await countsOf(place)).notifications, 7);
});

Deno.test("what fails again is a new dead letter with its own error, and can be sent back again", async () => {
  await using stack = await startStack({ notification: failingSends });
  const { entitlement, notification } = stack;
  await grant(entitlement.url, { user_id: "unlucky" });
  const seen = new Set<string>();
  for (let i = 0; i < 3; i++) {
    await until("there is a new dead letter", async () => {
      const { dead_letters } = await look(notification.url, ofNotification);
      return dead_letters.length === 1 && !seen.has(dead_letters[0].id);
    });
    const { dead_letters: [dead] } = await look(notification.url, ofNotification);
    seen.add(dead.id);
    await operate(notification.url, sendBack, { ids: [dead.id] });
  }
  const { operations } = await look(notification.url, "/debug/notification/operations?limit=2");
  assert.equal(operations.length, 2);
});

Deno.test("a notification deleted for its age comes back from its dead letter", async () => {
  await using stack = await startStack({ notification: failingSends });
  const { entitlement, notification, place } = stack;
  await grant(entitlement.url, { user_id: "unlucky" });
  const [dead] = await untilDead(notification.url, ofNotification, 1);
  const [before] = await notificationsOf(place);
  await ask(place.ownerUrl, "delete from notifications");
  await notification.stop();
  await using healed = await startNotification(place, { NOTIFICATION_DEBUG_ENABLED: "true" });
  await operate(healed.url, sendBack, { ids: [dead?.id] });
  await until("it is sent", async () => (await countsOf(place)).sent === 1);
  const [after] = await notificationsOf(place);
  const identity = (
    { notification_id, event_id, user_id, aggregate_key, version, type }: NonNullable<typeof after>,
  ) => [notification_id, event_id, user_id, aggregate_key, version, type];
  assert.deepEqual(after && identity(after), before && identity(before));
});

Deno.test("pages list each dead letter once, and an invalid request is refused with the reason", async () => {
  await using stack = await startStack();
  const { entitlement, notification } = stack;
  await insertEvents(
    entitlement.database.ownerUrl,
    Array.from({ length: 25 }, (_, i) => ({ key: `user-${i}:sku`, version: 1, payload: {} })),
  );
  await untilDead(entitlement.url, ofEntitlement, 25);
  const ids: string[] = [];
  for (let query: string | undefined = "?limit=7"; query !== undefined;) {
    const { dead_letters, next_cursor } = await look(entitlement.url, ofEntitlement + query);
    ids.push(...dead_letters.map(({ id }: DeadLetter) => id));
    query = next_cursor && `?limit=7&cursor=${next_cursor}`;
  }
  assert.equal(new Set(ids).size, 25);
  assert.equal(ids.length, 25);
  const one = await look(entitlement.url, `${ofEntitlement}?id=${ids[3]}`);
  assert.deepEqual(one.dead_letters.map(({ id }: DeadLetter) => id), [ids[3]]);

  const reads: [string, string][] = [
    ["?layer=outbox", "layer must be delivery or advisory or order"],
    ["?id=x", "id is not an id of this layer"],
    ["?limit=0", "limit must be at least 1"],
    ["?cursor=x", "cursor must be a next_cursor of this service"],
  ];
  for (const [query, message] of reads) {
    const answer = await call(`${notification.url}${ofNotification}${query}`);
    assertError(answer, 400, "BAD_REQUEST", message);
  }
  const good = { who: "kim", reason: "r", ids: ["1"] };
  const writes: [unknown, string][] = [
    [{ ...good, who: undefined }, "who is required"],
    [{ ...good, reason: " " }, "reason is required"],
    [{ ...good, ids: [] }, "ids must name at least one"],
    [{ ...good, ids: ["0"] }, "id is not an id of this layer"],
    [{ ...good, ids: undefined }, "exactly one of ids, error is required"],
    [{ ...good, error: "e" }, "exactly one of ids, error is required"],
    [{ ...good, dry_run: "no" }, "dry_run must be true or false"],
    [{ ...good, layer: "outbox" }, "layer must be delivery or advisory or order"],
  ];
  for (const [body, message] of writes) {
    const answer = await call(`${notification.url}${sendBack}`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
    assertError(answer, 400, "BAD_REQUEST", message);
  }
});
