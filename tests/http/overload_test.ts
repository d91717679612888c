// Several times what the system can do, for as long as a rush may last: what is too much is refused at
// once, what is taken is done, and afterwards everything is as before.
import assert from "node:assert/strict";
import {
  type Arrivals,
  runLoad,
  runOpenLoop,
  type Times,
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

// What both promise in any other hour is 200 MiB. Beyond that: 18 KiB for each of the 4,000
// connections, and 30 KiB for each of the thousand that may wait.
const maxMebibytes = 300;

Deno.test("under four times what it can do it refuses at once, loses nothing, and is itself again", async () => {
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
  assert.ok(refused.count > rush.changes.length / 4, "it was no overload");
  assert.equal(rush.withoutRetryAfter, 0);
  assert.deepEqual(new Set(rush.changes.map(({ status }) => status)).difference(expected), none);
  assert.ok(refused.p50 < timesOf(rush, 200).p50, "to be refused takes less than to be served");
  assert.ok(acknowledged.length > capacity * seconds / 3, `only ${acknowledged.length} were taken`);
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

/** Nothing is there that was not acknowledged, and all that was is there with its event and audit. */
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
