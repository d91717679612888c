// Attempts without success are recorded in the statement that changes the row, and deleted with the
// row.
import assert from "node:assert/strict";
import { outbox } from "../../entitlement/outbox.ts";
import { cleanEntitlement } from "../../entitlement/retention.ts";
import { cleanNotification } from "../../notification/retention.ts";
import { type Database, openDatabase } from "../../shared/postgres/postgres.ts";
import { startNats } from "../../tools/servers/nats.ts";
import { receive, startDelivery, untilAllAre } from "../support/deliveries.ts";
import { ask } from "../support/entitlement.ts";
import { eventOf } from "../support/events.ts";
import { freshPlace as freshNotification } from "../support/notification.ts";
import { insertEvents, manyEvents, publishAll, untilAll } from "../support/outbox.ts";
import { collectingLog, freshPlace, startRelay } from "../support/relays.ts";
import type { FreshPlace } from "../support/places.ts";
import { until } from "../../tools/servers/wait.ts";

const never = new AbortController().signal;
const done = { generation: 1, sequence: 1, ackedAt: 0 };

Deno.test("a retry, an expired lease and a final failure each record the worker, its times and the error", async () => {
  await using place = await freshPlace();
  await using one = pool(place);
  await insertEvents(place.ownerUrl, [{ key: "ann:book", version: 1 }]);
  const [first] = await outbox.claim(one.database, { worker: "first", leaseMs: 60_000 }, 1);
  assert.ok(first);
  await outbox.settle(one.database, [{ row: first, kind: "retry", error: "full", delayMs: 0 }]);
  await outbox.claim(one.database, { worker: "second", leaseMs: 1 }, 1);
  await new Promise((over) => setTimeout(over, 10)); // until that lease has expired
  const [third] = await outbox.claim(one.database, { worker: "third", leaseMs: 60_000 }, 1);
  assert.ok(third?.takenOver);
  const failed = { row: third, kind: "failed", error: "too large", attempted: true } as const;
  await outbox.settle(one.database, [failed]);
  assert.deepEqual(await attemptsOf(place), [
    ["RETRIED", "first", "full", true],
    ["TAKEN_OVER", "second", "The lease ran out", true],
    ["GAVE_UP", "third", "too large", true],
  ]);
});

Deno.test("a success, a release and a settle without its lease record no attempt", async () => {
  await using place = await freshPlace();
  await using one = pool(place);
  await insertEvents(place.ownerUrl, manyEvents({ keys: 3, versions: 1 }));
  const lease = { worker: "test", leaseMs: 60_000 };
  const [published, released, lost] = await outbox.claim(one.database, lease, 3);
  assert.ok(published && released && lost);
  await outbox.settle(one.database, [
    { row: published, kind: "done", result: done },
    { row: released, kind: "released" },
    { row: { ...lost, token: crypto.randomUUID() }, kind: "retry", error: "late", delayMs: 0 },
    {
      row: { ...lost, token: crypto.randomUUID() },
      kind: "failed",
      error: "late",
      attempted: true,
    },
  ]);
  assert.deepEqual(await attemptsOf(place), []);
});

Deno.test("an event that the stream has lost is recorded with its sequence", async () => {
  await using nats = await startNats();
  await using place = await freshPlace({ natsUrl: nats.url });
  await using _relay = startRelay(place);
  await insertEvents(place.ownerUrl, manyEvents({ keys: 2, versions: 1 }));
  await untilAll(place.ownerUrl, "PUBLISHED");
  await nats.kill();
  await nats.wipe();
  await nats.start();
  await until("both are recorded", async () => {
    const noted = await ask<{ outcome: string; stream_seq: number }>(
      place.ownerUrl,
      "select outcome, stream_seq::int from outbox_attempts order by stream_seq",
    );
    return JSON.stringify(noted) === JSON.stringify([
      { outcome: "LOST", stream_seq: 1 },
      { outcome: "LOST", stream_seq: 2 },
    ]);
  });
  await untilAll(place.ownerUrl, "PUBLISHED");
});

Deno.test("attempts are deleted with their event, and those of other events stay", async () => {
  await using place = await freshPlace();
  await using one = pool(place);
  const ids = (await insertEvents(place.ownerUrl, manyEvents({ keys: 3, versions: 1 }))).toSorted();
  const claimed = await outbox.claim(one.database, { worker: "test", leaseMs: 60_000 }, 3);
  await ask(
    place.ownerUrl,
    "insert into outbox_attempts (event_id, outcome) select event_id, 'RETRIED' from outbox_events",
  );
  await publishAll(one.database, claimed.filter(({ id }) => id === ids[1]));
  await ask(
    place.ownerUrl,
    "update outbox_events set published_at = now() - interval '2 days' where status = 'PUBLISHED'",
  );
  const day = 86_400_000;
  const options = { publishedTtlMs: day, doneReservationsTtlMs: day, auditMonths: 13 };
  await cleanEntitlement(one.database, options, collectingLog().log, never);
  const left = await ask<{ event_id: string }>(
    place.ownerUrl,
    "select event_id from outbox_attempts",
  );
  assert.deepEqual(left.map(({ event_id }) => event_id).sort(), [ids[0], ids[2]]);
});

Deno.test("attempts are deleted with their notification, and those of other notifications stay", async () => {
  await using place = await freshNotification();
  const ids = Array.from({ length: 3 }, () => crypto.randomUUID()).sort();
  await receive(place, [ids.map((eventId) => eventOf({ eventId, userId: `user of ${eventId}` }))]);
  const failing = startDelivery(place, () => Promise.reject(new Error("no")), { maxAttempts: 2 });
  await untilAllAre(place, "FAILED");
  await failing.stop();
  const attempts = async () => {
    const rows = await ask<{ id: string; outcome: string; error: string }>(
      place.ownerUrl,
      "select notification_id as id, outcome, error from delivery_attempts order by attempt_id",
    );
    return rows.map(({ id, outcome, error }) => `${id} ${outcome} ${error}`).sort();
  };
  const allOf = (id: string) => [`${id} GAVE_UP no`, `${id} RETRIED no`];
  assert.deepEqual(await attempts(), ids.flatMap(allOf));
  await ask(
    place.ownerUrl,
    "update notifications set created_at = now() - interval '31 days' where event_id = $1",
    [ids[1]],
  );
  await using database = pool(place);
  await cleanNotification(
    database.database,
    { days: 30, ledgerTtlMs: 1_000 },
    collectingLog().log,
    never,
  );
  assert.deepEqual(await attempts(), [ids[0], ids[2]].flatMap((id) => allOf(id ?? "")));
});

async function attemptsOf({ ownerUrl }: Pick<FreshPlace, "ownerUrl">): Promise<unknown[]> {
  const rows = await ask<Record<string, unknown>>(
    ownerUrl,
    `select outcome, worker, error, begun_at < ended_at as has_times
     from outbox_attempts
     order by attempt_id`,
  );
  return rows.map(({ outcome, worker, error, has_times }) => [outcome, worker, error, has_times]);
}

function pool({ serviceUrl }: { serviceUrl: string }): AsyncDisposable & { database: Database } {
  const database = openDatabase(serviceUrl, "test");
  return { database, [Symbol.asyncDispose]: () => database.end() };
}
