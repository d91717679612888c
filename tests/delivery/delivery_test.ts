// Each notification ends as SENT, or as FAILED with exactly one dead letter, whatever the channel
// does and whichever worker has the lease.
import assert from "node:assert/strict";
import { collecting, receive, startDelivery, untilAllAre } from "../support/deliveries.ts";
import { ask } from "../support/entitlement.ts";
import { eventOf, eventsOf } from "../support/events.ts";
import {
  countsOf,
  freshPlace,
  notificationsOf,
  publishTo,
  startNotification,
} from "../support/notification.ts";
import type { Place } from "../../tools/load/stage.ts";
import { metricOf } from "../support/metrics.ts";
import { until } from "../../tools/servers/wait.ts";

Deno.test("with failure injected, three attempts end in FAILED and one dead letter", async () => {
  await using place = await freshPlace();
  await using _service = await startNotification(place, {
    NOTIFICATION_DELIVERY_MAX_ATTEMPTS: "3",
    NOTIFICATION_DELIVERY_BACKOFF_BASE: "100ms",
    NOTIFICATION_DELIVERY_BACKOFF_MIN: "100ms",
    NOTIFICATION_DELIVERY_FAILURE_INJECTION_ENABLED: "true",
    NOTIFICATION_DELIVERY_FAILURE_INJECTION_USER_ID_PREFIX: "fail-",
  });
  const unlucky = eventOf({ userId: "fail-1" });
  await publishTo(place, [unlucky, eventOf({ userId: "ann" }), eventOf({ userId: "a fail-" })]);
  await until("three are stored", async () => (await countsOf(place)).notifications === 3);
  const rows = await untilAllAre(place, "SENT", "FAILED");
  assert.deepEqual(
    rows.map(({ user_id, status, attempt_count }) => [user_id, status, attempt_count]),
    [
      ["a fail-", "SENT", 0],
      ["ann", "SENT", 0],
      ["fail-1", "FAILED", 3],
    ],
  );
  const letters = await deadLetters(place);
  assert.deepEqual(
    letters.map(({ event_id, error_message, user_id }) => [event_id, error_message, user_id]),
    [
      [unlucky.eventId, "Failure injected for this user", "fail-1"],
    ],
  );
});

Deno.test("a failed send is retried after a delay, under the same idempotency key", async () => {
  await using place = await freshPlace();
  const attempts: { id: string; at: number }[] = [];
  const backoff = { baseMs: 200, maxMs: 10_000, minMs: 0, jitterMin: 1, jitterMax: 1 };
  await using _delivery = startDelivery(place, ({ notification_id: id }) => {
    attempts.push({ id, at: performance.now() });
    if (attempts.length < 3) throw new Error("not now"); // thrown at once, not rejected
    return Promise.resolve();
  }, { backoff });
  await receive(place, [[eventOf()]]);
  const [row] = await untilSettled(place);
  assert.deepEqual([row?.status, row?.attempt_count], ["SENT", 2]);
  assert.deepEqual(attempts.map(({ id }) => id), Array(3).fill(row?.notification_id));
  const [first = 0, second = 0, third = 0] = attempts.map(({ at }) => at);
  assert.ok(second - first >= 200 && third - second >= 400, `${second - first}, ${third - second}`);
});

Deno.test("a send that does not end delays no other, fails at its time limit, and does no harm later", async () => {
  await using place = await freshPlace();
  const signals: AbortSignal[] = [];
  const late: (() => void)[] = [];
  const { sent, send } = collecting();
  await using delivery = startDelivery(place, (one, signal) => {
    if (one.user_id !== "slow") return send(one, signal);
    signals.push(signal);
    return new Promise((_, reject) => late.push(() => reject(new Error("after all"))));
  }, { sendTimeoutMs: 1_000, maxAttempts: 2 });
  await receive(place, [[eventOf({ userId: "slow" }), ...eventsOf({ users: 120, versions: 2 })]]);
  await until("all others are sent", () => sent.length === 240);
  assert.deepEqual(signals.map(({ aborted }) => aborted), [false], "they did not wait for it");
  await until("it fails for good", async () => (await countsOf(place)).notification_dlq === 1);
  const slow = (await notificationsOf(place)).find(({ user_id }) => user_id === "slow");
  assert.deepEqual([slow?.status, slow?.attempt_count], ["FAILED", 2]);
  assert.equal(
    (await deadLetters(place))[0]?.error_message,
    "The channel did not answer within 1000 ms",
  );
  assert.deepEqual(signals.map(({ aborted }) => aborted), [true, true]);
  for (const end of late) end(); // no unhandled rejection, which would end the process
  await delivery.stop();
});

Deno.test("whatever a channel throws becomes an error message that can be stored", async () => {
  await using place = await freshPlace();
  const thrown = [undefined, null, "text", 7, Symbol("s"), Object.create(null), new Error(""), {
    toString: () => {
      throw new Error("no text");
    },
  }, new Error(`a\0b\ud800${"x".repeat(3_000)}`)];
  await using _delivery = startDelivery(
    place,
    ({ user_id }) => Promise.reject(thrown[Number(user_id)]),
    { maxAttempts: 1 },
  );
  await receive(place, [thrown.map((_, i) => eventOf({ userId: `${i}` }))]);
  const rows = await untilSettled(place);
  assert.ok(rows.every(({ status }) => status === "FAILED"));
  assert.equal((await deadLetters(place)).length, thrown.length);
});

Deno.test("an expired lease is taken over, which counts as an attempt", async () => {
  await using place = await freshPlace();
  await receive(place, [[eventOf({ userId: "ann" }), eventOf({ userId: "killer" })]]);
  await claimAs(place, "a worker that died");
  await ask(place.ownerUrl, "update notifications set attempt_count = 3 where user_id = 'killer'");
  const { sent, send } = collecting();
  await using _delivery = startDelivery(place, send, { maxAttempts: 3 });
  const rows = await untilSettled(place);
  assert.deepEqual(rows.map(({ status, attempt_count }) => [status, attempt_count]), [
    ["SENT", 1],
    ["FAILED", 4],
  ]);
  assert.deepEqual(
    sent.map(({ user_id }) => user_id),
    ["ann"],
    "what ends its workers is not sent",
  );
  assert.match((await deadLetters(place))[0]?.error_message ?? "", /Lease expired too often/);
});

Deno.test("a worker that lost its lease changes nothing and writes no dead letter", async () => {
  await using place = await freshPlace();
  const ends = Promise.withResolvers<void>();
  let begun = 0;
  await using first = startDelivery(place, async ({ user_id }) => {
    begun++;
    await ends.promise;
    if (user_id === "bad") throw new Error("from the one that lost it");
  }, { maxAttempts: 1 });
  await receive(place, [[eventOf({ userId: "good" }), eventOf({ userId: "bad" })]]);
  await until("both are being sent", () => begun === 2);
  await claimAs(place, "another");
  const lost = await metricOf("kenri_worker_lease_lost_total", { worker: "delivery" });
  ends.resolve();
  await until(
    "it noticed",
    async () => await metricOf("kenri_worker_lease_lost_total", { worker: "delivery" }) >= lost + 2,
  );
  await first.stop();
  const rows = await ask(
    place.ownerUrl,
    "select status, locked_by, attempt_count, last_error, sent_at from notifications",
  );
  const untouched = { status: "PROCESSING", locked_by: "another", attempt_count: 0 };
  assert.deepEqual(rows, Array(2).fill({ ...untouched, last_error: null, sent_at: null }));
  assert.equal((await countsOf(place)).notification_dlq, 0);
});

Deno.test("FAILED and the dead letter are written together or not at all", async () => {
  await using place = await freshPlace();
  await ask(
    place.ownerUrl,
    `create function refuse() returns trigger language plpgsql as
       $$ begin raise exception 'refused'; end $$;
     create trigger refuse before insert on notification_dlq
       for each row execute function refuse()`,
  );
  await using delivery = startDelivery(place, () => Promise.reject(new Error("never")), {
    maxAttempts: 1,
  });
  await receive(place, [[eventOf()]]);
  await until("it can't", () => delivery.log.some((line) => /can't use its table/.test(line)));
  assert.deepEqual((await notificationsOf(place)).map(({ status }) => status), ["PROCESSING"]);
  await ask(place.ownerUrl, "drop trigger refuse on notification_dlq");
  await untilAllAre(place, "FAILED");
  assert.equal((await deadLetters(place)).length, 1);
});

Deno.test("a notification that fails again keeps its one dead letter", async () => {
  await using place = await freshPlace();
  await using _delivery = startDelivery(place, () => Promise.reject(new Error("never")), {
    maxAttempts: 1,
  });
  await receive(place, [[eventOf()]]);
  await untilSettled(place);
  const before = await deadLetters(place);
  await ask(place.ownerUrl, "update notifications set status = 'PENDING', attempt_count = 0");
  await untilAllAre(place, "FAILED");
  assert.equal(before.length, 1);
  assert.deepEqual(await deadLetters(place), before);
});

const untilSettled = (place: Place) => untilAllAre(place, "SENT", "FAILED");

interface DeadLetter {
  event_id: string;
  notification_id: string;
  error_message: string;
  user_id: string;
}

function deadLetters({ ownerUrl }: Place): Promise<DeadLetter[]> {
  return ask<DeadLetter>(
    ownerUrl,
    `select event_id, notification_id, error_message, payload_json->>'user_id' as user_id
     from notification_dlq
     order by dlq_id`,
  );
}

/** Claims all rows for another worker; with `a worker that died` the lease has expired already. */
async function claimAs({ ownerUrl }: Place, worker: string): Promise<void> {
  await ask(
    ownerUrl,
    `update notifications
     set status = 'PROCESSING', locked_by = $1, claim_token = gen_random_uuid(), locked_at = now(),
       lease_until = now() + case $1 when 'another' then interval '1 hour' else interval '-1 s' end`,
    [worker],
  );
}
