// The invariants of the whole system, whatever was killed, wiped or redelivered: what clients were
// answered, compared with all tables of both databases and with what the channel sent. Everything
// must have come to rest before (see untilAtRest).
import assert from "node:assert/strict";
import type { Answer } from "../../load/repeating_client.ts";
import type { ChangeRequest } from "../../load/change_request.ts";
import { indexed, type Invariant } from "./invariant.ts";
import {
  answersAreKept,
  changesAreTold,
  refusalsLeaveNoTrace,
  storedAnswersAreTrue,
  versionsHaveNoGap,
} from "./of_changes.ts";
import {
  deadLettersAreOfFailures,
  eventsArriveOnce,
  eventsEnd,
  everySendIsKnown,
  noLeaseIsLeft,
  nothingIsInvented,
  notificationsEnd,
  whatIsSentWasSent,
} from "./of_events.ts";
import { type AllTables, readAllTables, unrest } from "./tables.ts";
import { until } from "../../servers/wait.ts";

export interface OwnerUrls {
  entitlement: string;
  notification: string;
}

export interface Answered {
  request: ChangeRequest;
  answer: Answer;
}

/** One send, as the channel itself knows it. */
export interface SendRecord {
  notification_id: string;
  event_id: string;
}

export interface Evidence {
  owners: OwnerUrls;
  answered: Answered[]; // 200 and 4xx; of anything else the client can't know what became of it
  sends?: SendRecord[];
}

/** Waits until no event, message or notification is on its way any more. */
export async function untilAtRest(owners: OwnerUrls, withinMs = 30_000): Promise<void> {
  let restless: unknown;
  await until("everything is at rest", async () => {
    restless = await unrest(owners.entitlement, owners.notification);
    return restless === undefined;
  }, withinMs).catch((late) => {
    throw new Error(`${late.message}: ${JSON.stringify(restless)}`);
  });
}

export async function checkInvariants(evidence: Evidence): Promise<Invariant[]> {
  const { entitlement, notification } = evidence.owners;
  const tables = await readAllTables(entitlement, notification);
  return invariantsOf(tables, evidence.answered, evidence.sends);
}

export function assertAllHold(invariants: Invariant[]): void {
  const broken = invariants.filter(({ violations }) => violations > 0);
  assert.deepEqual(broken, []);
}

export function invariantsOf(
  tables: AllTables,
  answered: Answered[],
  sends: SendRecord[] | undefined,
): Invariant[] {
  const told = indexed(tables);
  return [
    changesAreTold(told, answered),
    versionsHaveNoGap(told),
    eventsEnd(told),
    eventsArriveOnce(told),
    nothingIsInvented(told),
    notificationsEnd(told),
    deadLettersAreOfFailures(told),
    ...(sends ? [everySendIsKnown(told, sends), whatIsSentWasSent(told, sends)] : []),
    noLeaseIsLeft(told),
    answersAreKept(told, answered),
    refusalsLeaveNoTrace(told, answered),
    storedAnswersAreTrue(told),
  ];
}
