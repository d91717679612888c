// The invariants of the system, and those of a chaos run alone: order, repeats and causes.
import type { Answered } from "./invariants/invariants.ts";
import { invariantsOf } from "./invariants/invariants.ts";
import { type Invariant, invariant, lineOf } from "./invariants/invariant.ts";
import type { AllTables } from "./invariants/tables.ts";
import { isChange, itemOf } from "../load/any_request.ts";
import { leaksIn } from "../planted.ts";
import { accountChecks } from "./account_checks.ts";
import { failingUser, type SentRequest } from "./clients.ts";
import type { Evidence } from "./evidence.ts";
import { matchChecks } from "./match_checks.ts";
import { playerUser } from "./match_clients.ts";
import { poisonUser } from "./messages.ts";
import {
  endpointsComeBack,
  ordersSucceed,
  repeatedOrdersAreExplained,
  whatSucceededIsNotSent,
} from "./order_invariants.ts";
import { eventsAreNotGivenUp, poisonIsKept, poisonLeavesNothing } from "./poison_invariants.ts";
import {
  healsInTime,
  repeatedSendsAreExplained,
  sendsAreInOrder,
  servicesEndWhenAsked,
} from "./run_invariants.ts";

export function check(evidence: Evidence): Invariant[] {
  const tables = withoutOthers(evidence.tables);
  const { requests } = evidence;
  return [
    ...invariantsOf(
      tables,
      answeredOf(requests),
      evidence.log.sends.filter(isOfClients),
      evidence.received.filter(({ body }) => others.every((other) => !body.includes(`"${other}`))),
    ),
    everyRequestWasAnswered(requests),
    versionsFollowAnswers(requests),
    soleClientsAreNotRefused(requests),
    answersStayTheSame(requests),
    keysAreNotReused(requests),
    nothingFailsForOutages(tables),
    outagesUseUpNoAttempts(tables),
    sendsAreInOrder(evidence.log.sends.filter(isOfClients), tables),
    repeatedSendsAreExplained(evidence),
    ordersSucceed(tables),
    endpointsComeBack(tables),
    repeatedOrdersAreExplained(evidence),
    whatSucceededIsNotSent(evidence),
    poisonLeavesNothing(evidence),
    poisonIsKept(evidence),
    eventsAreNotGivenUp(evidence),
    ...accountChecks(evidence),
    ...matchChecks(evidence),
    servicesEndWhenAsked(evidence),
    healsInTime(evidence),
    noSecretIsShown(evidence),
  ];
}

/** A message of an unknown type is stored, but it belongs to no change; nor does the end of a ticket. */
const others = [poisonUser, playerUser];

function withoutOthers(tables: AllTables): AllTables {
  const theirs = new Set(
    tables.notifications.filter((row) => !isOfClients(row)).map(({ event_id }) => event_id),
  );
  return {
    ...tables,
    notifications: tables.notifications.filter(isOfClients),
    processed: tables.processed.filter((id) => !theirs.has(id)),
    eventTypes: tables.eventTypes.filter(isOfClients),
    orders: tables.orders.filter(({ event_id }) => !theirs.has(event_id ?? "")),
    ledger: tables.ledger.filter(({ idempotency_key }) =>
      !theirs.has(idempotency_key.split(":")[0] ?? "")
    ),
  };
}

const isOfClients = ({ user_id }: { user_id: string }) =>
  others.every((other) => !user_id.startsWith(other));

function answeredOf(requests: SentRequest[]): Answered[] {
  return requests.flatMap(({ request, answer }) => answer ? [{ request, answer }] : []);
}

function everyRequestWasAnswered(requests: SentRequest[]): Invariant {
  return invariant(
    "6. Every request was answered in the end",
    requests,
    ({ answer }) => answer !== undefined,
  );
}

/** A request that was sent after an answer had arrived gets a higher version than that answer. */
function versionsFollowAnswers(requests: SentRequest[]): Invariant {
  const changes = requests.filter(({ request, kind, answer }) =>
    isChange(request) && kind === "change" && answer?.status === 200
  ).map((one) => ({ ...one, line: lineOfRequest(one), version: versionIn(one) }));
  const late = new Set<string>();
  for (const ofLine of Map.groupBy(changes, ({ line }) => line).values()) {
    const sent = ofLine.toSorted((a, b) => a.sentAt - b.sentAt);
    const answered = ofLine.toSorted((a, b) => a.answeredAt - b.answeredAt);
    let [next, highest] = [0, 0];
    for (const one of sent) {
      for (let earlier; (earlier = answered[next]) && earlier.answeredAt < one.sentAt; next++) {
        highest = Math.max(highest, earlier.version);
      }
      if (one.version <= highest) late.add(one.request.key);
    }
  }
  return invariant(
    "1. A change that was requested after the answer to another has a higher version",
    changes,
    ({ request }) => !late.has(request.key),
  );
}

function lineOfRequest({ request }: SentRequest): string {
  return lineOf({ user_id: request.user, stock_keeping_unit: itemOf(request) ?? "" });
}

function versionIn({ answer }: SentRequest): number {
  const body = JSON.parse(answer?.body ?? "{}");
  return (body.transaction ?? body).version;
}

function soleClientsAreNotRefused(requests: SentRequest[]): Invariant {
  return invariant(
    "6. The only client that changes an entitlement is never refused, nor is one that reserves or grants",
    requests.filter(({ isSole, kind, answer }) => isSole && kind !== "repeat" && answer),
    ({ answer }) => answer !== undefined && answer.status < 300,
  );
}

function answersStayTheSame(requests: SentRequest[]): Invariant {
  const first = new Map(
    requests.filter(({ kind, answer }) => kind === "change" && answer)
      .map(({ request, answer }) => [request.key, answer]),
  );
  return invariant(
    "6. The same request gets the same answer, byte for byte",
    requests.filter(({ kind, answer }) => (kind === "repeat" || kind === "double tap") && answer),
    ({ request, answer }) => {
      const before = first.get(request.key);
      return before?.status === answer?.status && before?.body === answer?.body;
    },
  );
}

function keysAreNotReused(requests: SentRequest[]): Invariant {
  return invariant(
    "6. Another request under a used key is refused",
    requests.filter(({ kind, answer }) => kind === "key conflict" && answer),
    ({ answer }) =>
      answer?.status === 409 && JSON.parse(answer.body).code === "IDEMPOTENCY_KEY_CONFLICT",
  );
}

/** Only sends to the users of failing sends may fail: no outage may use up the attempts. */
function nothingFailsForOutages(
  { events, notifications, reservations }: AllTables,
): Invariant {
  const ends = [
    ...[...events, ...reservations].map((row) => ({ ...row, mustFail: false })),
    ...notifications.map((row) => ({ ...row, mustFail: row.user_id.startsWith(failingUser) })),
  ];
  return invariant(
    "2., 4. and 8. Nothing is FAILED but the notifications whose sends fail on purpose",
    ends,
    ({ status, mustFail }) => (status === "FAILED") === mustFail,
  );
}

function outagesUseUpNoAttempts({ reservations }: AllTables): Invariant {
  return invariant(
    "8. No fault uses up an attempt of a reservation, except by the end of a lease",
    reservations,
    ({ failures }) => failures === 0,
  );
}

function noSecretIsShown({ log, said }: Evidence): Invariant {
  const lines = [...log.lines.map(({ text }) => text), ...log.strays];
  const texts = Object.entries({ ...said, "the log": lines.join("\n") });
  const leaks = texts.flatMap(([where, text]) => leaksIn(where, text));
  const { statement, violations, examples } = invariant(
    "No password and no whole idempotency key is in a log, a metric or a stored error",
    leaks,
    () => false,
  );
  return { statement, checked: texts.length, violations, examples };
}
