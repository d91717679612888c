// The invariants of the whole system, which hold whatever was killed, wiped or redelivered: the
// answers that clients got are compared with all tables of both databases and with what the channel
// sent and receivers got. No work may be unfinished (see untilAtRest).
import assert from "node:assert/strict";
import type { Answer } from "../../load/repeating_client.ts";
import type { AnyRequest } from "../../load/any_request.ts";
import { indexed, type Invariant } from "./invariant.ts";
import {
  answersAreKept,
  changesAreRecorded,
  refusalsLeaveNoTrace,
  storedAnswersAreTrue,
  versionsHaveNoGap,
} from "./change_invariants.ts";
import {
  deadLettersAreOfFailures,
  eventsArriveOnce,
  eventsEnd,
  everySendIsKnown,
  noLeaseIsLeft,
  nothingIsInvented,
  notificationsEnd,
  whatIsSentWasSent,
} from "./event_invariants.ts";
import {
  eventsBecomeOrders,
  ledgerIsOfOrders,
  ordersAreKept,
  ordersEndWithTheirLedger,
  type Receipt,
  receiptsAreOfOrders,
  versionsArriveInOrder,
  whatSucceededWasReceived,
} from "./order_invariants.ts";
import {
  balancesAddUp,
  cancelsWinOrLose,
  nothingActsEarly,
  reservationsAreKept,
  reservationsEnd,
  transactionsAreOfReservations,
  transactionsAreRecorded,
} from "./points_invariants.ts";
import { type AllTables, readAllTables, unrest } from "./tables.ts";
import { until } from "../../servers/wait.ts";

export interface OwnerUrls {
  entitlement: string;
  notification: string;
}

export interface Answered {
  request: AnyRequest;
  answer: Answer;
}

/** One send, as the channel recorded it. */
export interface SendRecord {
  notification_id: string;
  event_id: string;
}

export interface Evidence {
  owners: OwnerUrls;
  answered: Answered[]; // with 200 or 4xx; after anything else the client can't know the outcome
  sends?: SendRecord[];
  received?: Receipt[];
}

/** Waits until no reservation, event, notification or order is unfinished. */
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
  return invariantsOf(tables, evidence.answered, evidence.sends, evidence.received);
}

export function assertAllHold(invariants: Invariant[]): void {
  const broken = invariants.filter(({ violations }) => violations > 0);
  assert.deepEqual(broken, []);
}

export function invariantsOf(
  tables: AllTables,
  answered: Answered[],
  sends: SendRecord[] | undefined,
  received: Receipt[] | undefined,
): Invariant[] {
  const all = indexed(tables);
  return [
    changesAreRecorded(all, answered),
    versionsHaveNoGap(all),
    eventsEnd(all),
    eventsArriveOnce(all),
    nothingIsInvented(all),
    notificationsEnd(all),
    deadLettersAreOfFailures(all),
    ...(sends ? [everySendIsKnown(all, sends), whatIsSentWasSent(all, sends)] : []),
    noLeaseIsLeft(all),
    answersAreKept(all, answered),
    refusalsLeaveNoTrace(all, answered),
    storedAnswersAreTrue(all),
    reservationsAreKept(all, answered),
    nothingActsEarly(all),
    reservationsEnd(all),
    transactionsAreOfReservations(all),
    balancesAddUp(all),
    transactionsAreRecorded(all),
    cancelsWinOrLose(all, answered),
    ordersAreKept(all, answered),
    eventsBecomeOrders(all),
    ordersEndWithTheirLedger(all),
    ledgerIsOfOrders(all),
    ...(received
      ? [
        whatSucceededWasReceived(all, received),
        receiptsAreOfOrders(all, received),
        versionsArriveInOrder(all, received),
      ]
      : []),
  ];
}
