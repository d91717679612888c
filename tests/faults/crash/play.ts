// Plays one row of the matrix: the crash, what it leaves behind, the next start, and the result.
import assert from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";
import { inTime, until } from "../../../tools/servers/wait.ts";
import { deathAt, doom } from "./doomed.ts";
import type { Counts } from "./observer.ts";
import type { CrashPoint, System } from "./point.ts";

export const killed = 128 + 9;

export async function playOut<Service extends string, On extends System<Service>>(
  point: CrashPoint<Service, On>,
  open: () => Promise<On>,
): Promise<void> {
  const { of, at, leaves, ends } = point;
  await using system = await open();
  const { observer } = system;
  const settings = { ...system.settings, ...point.settings };
  await point.before?.(system);
  const own = { ...settings, ...system.shortLeases, ...point.ownSettings };
  await using dying = at
    ? await system.start(of, { ...own, ...deathAt(at) }, doom)
    : await system.start(of, own);
  await point.meanwhile?.(system, dying);
  assert.equal(await inTime("it dies", dying.exited), killed);
  await untilEqual(() => observer.sessionsOf(of), 0);
  await untilEqual(observer.counts, leaves);
  if (point.unacknowledged !== undefined) {
    await untilEqual(observer.unacknowledged, point.unacknowledged);
  }

  await point.afterwards?.(system);
  await using next = await system.goOn(point, settings);
  await untilEqual(observer.counts, ends);
  await untilEqual(observer.unacknowledged, 0);
  await system.assertHolds(point, [...dying.log, ...next.log]);
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
