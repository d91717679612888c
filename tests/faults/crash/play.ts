// Plays one row of the matrix: the crash, what it leaves behind, the next start, and the result.
import assert from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";
import { freshBoth } from "../../support/places.ts";
import {
  assertAllHold,
  checkInvariants,
  untilAtRest,
} from "../../../tools/chaos/invariants/invariants.ts";
import { sendRecordsIn } from "../../support/sends.ts";
import {
  type ServiceProcess,
  type Settings,
  startService,
} from "../../../tools/servers/service_process.ts";
import { inTime, until } from "../../../tools/servers/wait.ts";
import { deathAt, doomed } from "./doomed.ts";
import { type Counts, observe } from "./observer.ts";
import type { CrashPoint } from "./point.ts";
import { Stage } from "./stage.ts";

const quick: Settings = {
  NOTIFICATION_NATS_ACK_WAIT: "1s",
  NOTIFICATION_DELIVERY_POLL_INTERVAL: "50ms",
  ENTITLEMENT_OUTBOX_POLL_INTERVAL: "50ms",
};
// Only the process that dies has these, so that no other process can lose a lease by being slow.
const shortLeases: Settings = {
  ENTITLEMENT_OUTBOX_LEASE: "1s",
  NOTIFICATION_DELIVERY_LEASE: "1s",
};
export const killed = 128 + 9;

export async function playOut(point: CrashPoint): Promise<void> {
  const { of, leaves, ends } = point;
  await using place = await freshBoth();
  await using observer = await observe(place);
  const stage = new Stage(place);
  const settings = { ...place.settings, ...quick, ...point.settings };
  await point.before?.(stage);
  await using dying = await startDoomed(point, settings);
  await point.meanwhile?.(stage, dying);
  assert.equal(await inTime("it dies", dying.exited), killed);
  await untilEqual(() => observer.sessionsOf(of), 0);
  await untilEqual(observer.counts, leaves);
  if (point.unacknowledged !== undefined) {
    await untilEqual(observer.unacknowledged, point.unacknowledged);
  }

  await point.afterwards?.(stage);
  // If notification dies, its events are published already, so entitlement is not needed.
  await using entitlement = of === "entitlement" ? await startService(of, settings) : undefined;
  await using notification = await startService("notification", settings);
  if (entitlement) assert.equal(await stage.askAgain(entitlement.url), point.replays);
  await untilEqual(observer.counts, ends);
  await untilAtRest(place.owners);
  await untilEqual(observer.unacknowledged, 0);
  const sends = sendRecordsIn([...dying.log, ...notification.log]);
  assert.equal(sends.length, point.sends);
  assertAllHold(
    await checkInvariants({ owners: place.owners, answered: stage.answered, sends }),
  );
}

function startDoomed(
  { of, at, ownSettings }: CrashPoint,
  settings: Settings,
): Promise<ServiceProcess> {
  const own = { ...settings, ...shortLeases, ...ownSettings };
  return at ? startService(of, { ...own, ...deathAt(at) }, doomed) : startService(of, own);
}

async function untilEqual<Value extends number | Counts | undefined>(
  look: () => Promise<Value>,
  expected: Value,
): Promise<void> {
  let found: Value | undefined;
  await until("it is as expected", async () => {
    found = await look();
    return isDeepStrictEqual(found, expected);
  }).catch(() => assert.deepEqual(found, expected));
}
