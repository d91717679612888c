// A load of several times the capacity: what is too much is refused at once, what is accepted is
// done, and afterwards the service is as fast as before.
import assert from "node:assert/strict";
import type { Times } from "../../tools/load/closed_loop.ts";
import {
  type Arrivals,
  runLoad,
  runOpenLoop,
  timesOf,
  turnedAway,
} from "../../tools/load/sockets.ts";
import { type Entitlement, startEntitlement } from "../support/entitlement.ts";
import { memoryOf } from "../../tools/servers/memory.ts";
import {
  allSent,
  countsOf,
  freshPlace,
  startNotification,
  untilSent,
} from "../support/notification.ts";
import { until } from "../../tools/servers/wait.ts";

const times = 4;
const seconds = 10;
const warmUp = 8_000;

// Without overload a service may use 200 MiB. Under overload it
// may use 18 KiB more for each of the 4,000 connections, and 30 KiB for each of the thousand
// requests that may wait.
const maxMebibytes = 300;

Deno.test("under four times its capacity the service refuses at once, loses nothing, and recovers", async () => {
  await using kenri = await startEntitlement();
  const { stream, subject, url } = kenri;
  await using place = await freshPlace({ stream, subject });
  await using notification = await startNotification(place);
  const { seconds: needed } = await runLoad(url, "change", { first: 0, count: warmUp });
  const capacity = warmUp / needed;
  const calm = { perSecond: Math.round(capacity / 8), seconds: 2 };
  const before = await runOpenLoop(url, { ...calm, first: warmUp });
  let first = warmUp + before.changes.length;

  const rush = await runOpenLoop(url, { perSecond: capacity * times, seconds, first });
  const acknowledged = numbersOf(rush, first, 200);
  const refused = timesOf(rush, 503);
  assert.ok(refused.count > rush.changes.length / 4, "the load was no overload");
  assert.equal(rush.withoutRetryAfter, 0);
  assert.deepEqual(new Set(rush.changes.map(({ status }) => status)).difference(expected), none);
  assert.ok(refused.p50 < timesOf(rush, 200).p50, "a refusal must take less time than a change");
  assert.ok(
    acknowledged.length > capacity * seconds / 3,
    `only ${acknowledged.length} were accepted`,
  );
  first += rush.changes.length;

  const usual = timesOf(before, 200);
  let made = before.changes.length;
  await until("it answers as before", async () => {
    const after = await runOpenLoop(url, { ...calm, first });
    first += after.changes.length;
    made += timesOf(after, 200).count;
    return after.changes.every(({ status }) => status === 200) &&
      isUsual(timesOf(after, 200), usual);
  }, 15_000);
  for (const { pid } of [kenri.service, notification]) {
    const { peakMebibytes } = memoryOf(pid);
    assert.ok(peakMebibytes < maxMebibytes, `${peakMebibytes} MiB`);
  }

  const total = warmUp + made + acknowledged.length;
  await assertEachOnce(kenri, acknowledged, total);
  await untilSent(place, total, 60_000);
  assert.deepEqual(await countsOf(place), allSent(total));
});

const expected = new Set([200, 503, turnedAway]);
const none = new Set<number>();

function isUsual(now: Times, usual: Times): boolean {
  return now.p50 < usual.p50 * 3 + 50 && now.p99 < usual.p99 * 3 + 250;
}

function numbersOf({ changes }: Arrivals, first: number, status: number): number[] {
  return changes.flatMap((change, i) => change.status === status ? [first + i] : []);
}

/** Exactly the acknowledged changes are stored, each with its event and its audit row. */
async function assertEachOnce(
  kenri: Entitlement,
  acknowledged: number[],
  total: number,
): Promise<void> {
  assert.deepEqual(await kenri.counts(), {
    entitlements: total,
    idempotency_keys: total,
    outbox_events: total,
    entitlement_audit: total,
  });
  const missing = await kenri.rows(
    `select user_id
     from unnest($1::text[]) as acknowledged (user_id)
     where not exists (
       select from outbox_events
       where aggregate_key = acknowledged.user_id || ':premium' and payload->>'version' = '1')`,
    [acknowledged.map((number) => `user-${number}`)],
  );
  assert.deepEqual(missing, []);
}
