// The events of user `a` with item `b:c` and of user `a:b` with item `c` are independent: in their
// order, in timelines and when one of the users is erased.
import assert from "node:assert/strict";
import fc from "fast-check";
import { aggregateKeyOf } from "../../proto/entitlement/aggregate_key.ts";
import { grant } from "../support/api.ts";
import { withClient } from "../../tools/servers/asking.ts";
import { freshDatabase } from "../support/databases.ts";
import { collecting, receive, startDelivery } from "../support/deliveries.ts";
import { ask } from "../support/entitlement.ts";
import { eventOf } from "../support/events.ts";
import { countsOf, freshPlace, untilSent } from "../support/notification.ts";
import { ops } from "../operators/ops.ts";
import { look, startStack } from "../support/stack.ts";
import { until } from "../../tools/servers/wait.ts";

const one = { userId: "a", stockKeepingUnit: "b:c" };
const other = { userId: "a:b", stockKeepingUnit: "c" };
const why = ["--reason", "asked for it"];

Deno.test("the services and both databases make the same key", async () => {
  const text = fc.oneof(
    fc.string({ unit: fc.constantFrom("a", "b", ":", "%", "2", "5", "3", "A") }),
    fc.string({ unit: "binary" }).filter((text) => !text.includes("\0")),
  );
  for (const service of ["entitlement", "notification"] as const) {
    await using database = await freshDatabase(service);
    await withClient(database.serviceUrl, async (client) => {
      await fc.assert(fc.asyncProperty(text, text, async (user, item) => {
        const { rows: [made] } = await client.query("select aggregate_key_of($1, $2) as key", [
          user,
          item,
        ]);
        assert.equal(made.key, aggregateKeyOf(user, item));
      }));
    });
  }
});

Deno.test("version 2 waits for version 1 of its own key, and not for that of a similar key", async () => {
  await using place = await freshPlace();
  const { sent, send } = collecting();
  await using _delivery = startDelivery(place, send);
  await receive(place, [[eventOf({ ...other, version: 1 })]]);
  await until("the other's is sent", () => sent.length === 1);
  await receive(place, [[eventOf({ ...one, version: 2 })]]);
  await receive(place, [[eventOf({ userId: "marker" })]]);
  await until("the later event is sent", () => sent.some(({ user_id }) => user_id === "marker"));
  await receive(place, [[eventOf({ ...one, version: 1 })]]);
  await until("all are sent", () => sent.length === 4);
  const ofOne = sent.filter(({ user_id }) => user_id === one.userId);
  assert.deepEqual(ofOne.map(({ payload }) => payload["version"]), [1, 2]);
});

Deno.test("events that wait for one user are not in the timeline of the other and do not stop an erasure", async () => {
  await using stack = await startStack();
  const { entitlement, place } = stack;
  for (const { userId, stockKeepingUnit } of [one, other]) {
    await grant(entitlement.url, { user_id: userId, stock_keeping_unit: stockKeepingUnit });
  }
  await untilSent(place, 2);
  await entitlement.rows(
    `update outbox_events
     set status = 'PENDING', published_at = null, next_retry_at = now() + interval '1 hour'
     where payload->>'user_id' = $1`,
    [other.userId],
  );
  const { events } = await look(entitlement.url, "/debug/entitlement/timeline?user_id=a");
  assert.deepEqual(events.map(({ user_id }: { user_id: string }) => user_id), ["a"]);
  const { code, output, errors } = await ops(stack, "erase-user", "a", ...why);
  assert.equal(code, 0, `${output}${errors}`);
});

Deno.test("erasing `dan` drops no captured message of `dan:x`", async () => {
  await using stack = await startStack();
  const { place } = stack;
  await grant(stack.entitlement.url, { user_id: "dan" });
  await untilSent(place, 1);
  await capture(place.ownerUrl, aggregateKeyOf("dan:x", "book"));
  await capture(place.ownerUrl, aggregateKeyOf("dan", "x:book"));
  await capture(place.ownerUrl, null);
  const { code, errors } = await ops(stack, "erase-user", "dan", ...why);
  assert.equal(code, 0, errors);
  const copies = await ask<{ key: string | null; has_body: boolean }>(
    place.ownerUrl,
    `select message_headers->'aggregate_key'->>0 as key, message_body is not null as has_body
     from notification_nats_dlq
     order by dlq_id`,
  );
  assert.deepEqual(copies.map(({ key, has_body }) => [key, has_body]), [
    [aggregateKeyOf("dan:x", "book"), true],
    [null, false],
    [null, false], // its user is unknown, so it may be this one
  ]);
  assert.equal((await countsOf(place)).processed_events, 3, "not that of `dan:x`");
});

/** Captures a message with a damaged body, so that only its headers name its user. */
async function capture(ownerUrl: string, key: string | null): Promise<void> {
  await ask(
    ownerUrl,
    `insert into notification_nats_dlq
       (advisory_id, kind, stream, consumer, stream_seq, advised_at, message_headers, message_body)
     values ($1, 'MSG_TERMINATED', 'stream', 'consumer', 1, now(), $2, $3)`,
    [
      crypto.randomUUID(),
      { "Nats-Msg-Id": [crypto.randomUUID()], ...(key && { aggregate_key: [key] }) },
      new TextEncoder().encode("damaged: dan"),
    ],
  );
}
