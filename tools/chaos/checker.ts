// The invariants of the contract, and what a run of chaos adds to them: order, repeats and causes.
import type { Answered } from "./invariants/invariants.ts";
import { invariantsOf } from "./invariants/invariants.ts";
import { type Invariant, invariant, lineOf } from "./invariants/invariant.ts";
import type { AllTables } from "./invariants/tables.ts";
import { leaksIn } from "../planted.ts";
import { failingUser, type Told } from "./clients.ts";
import type { Evidence } from "./evidence.ts";
import { poisonUser } from "./messages.ts";
import { eventsAreNotGivenUp, poisonIsKept, poisonLeavesNothing } from "./checker_of_poison.ts";
import {
  repeatedSendsAreExplained,
  sendsAreInOrder,
  servicesEndWhenAsked,
} from "./checker_of_runs.ts";

export function check(evidence: Evidence): Invariant[] {
  const tables = withoutPoison(evidence.tables);
  const { told } = evidence;
  return [
    ...invariantsOf(tables, answeredOf(told), evidence.log.sends.filter(isOfClients)),
    everyoneWasTold(told),
    versionsFollowAnswers(told),
    soleClientsAreNotRefused(told),
    answersStayTheSame(told),
    keysAreNotReused(told),
    nothingFailsForOutages(tables),
    sendsAreInOrder(evidence.log.sends.filter(isOfClients), tables),
    repeatedSendsAreExplained(evidence),
    poisonLeavesNothing(evidence),
    poisonIsKept(evidence),
    eventsAreNotGivenUp(evidence),
    servicesEndWhenAsked(evidence),
    nothingIsGivenAway(evidence),
  ];
}

/** A message of an unknown type is stored, but no change is behind it. */
function withoutPoison(tables: AllTables): AllTables {
  const poisoned = new Set(
    tables.notifications.filter((row) => !isOfClients(row)).map(({ event_id }) => event_id),
  );
  return {
    ...tables,
    notifications: tables.notifications.filter(isOfClients),
    processed: tables.processed.filter((id) => !poisoned.has(id)),
  };
}

const isOfClients = ({ user_id }: { user_id: string }) => !user_id.startsWith(poisonUser);

function answeredOf(told: Told[]): Answered[] {
  return told.flatMap(({ request, answer }) => answer ? [{ request, answer }] : []);
}

function everyoneWasTold(told: Told[]): Invariant {
  return invariant(
    "6. Every client was told in the end what became of its request",
    told,
    ({ answer }) => answer !== undefined,
  );
}

/** What was sent after an answer had arrived has a higher version than that answer. */
function versionsFollowAnswers(told: Told[]): Invariant {
  const changes = told.filter(({ kind, answer }) => kind === "change" && answer?.status === 200)
    .map((one) => ({ ...one, line: lineOfRequest(one), version: versionIn(one) }));
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
    "1. A change that was asked for after another's answer has a higher version",
    changes,
    ({ request }) => !late.has(request.key),
  );
}

function lineOfRequest({ request: { user, sku } }: Told): string {
  return lineOf({ user_id: user, stock_keeping_unit: sku });
}

function versionIn({ answer }: Told): number {
  return JSON.parse(answer?.body ?? "{}").version;
}

function soleClientsAreNotRefused(told: Told[]): Invariant {
  return invariant(
    "6. A client that alone changes an entitlement is never refused",
    told.filter(({ isSole, kind, answer }) => isSole && kind !== "repeat" && answer),
    ({ answer }) => answer?.status === 200,
  );
}

function answersStayTheSame(told: Told[]): Invariant {
  const first = new Map(
    told.filter(({ kind, answer }) => kind === "change" && answer)
      .map(({ request, answer }) => [request.key, answer]),
  );
  return invariant(
    "6. The same request gets the same answer, byte for byte",
    told.filter(({ kind, answer }) => (kind === "repeat" || kind === "double tap") && answer),
    ({ request, answer }) => {
      const before = first.get(request.key);
      return before?.status === answer?.status && before?.body === answer?.body;
    },
  );
}

function keysAreNotReused(told: Told[]): Invariant {
  return invariant(
    "6. Another request under a used key is refused",
    told.filter(({ kind, answer }) => kind === "key conflict" && answer),
    ({ answer }) =>
      answer?.status === 409 && JSON.parse(answer.body).code === "IDEMPOTENCY_KEY_CONFLICT",
  );
}

/** No message of these runs fails by itself, but those of users whose sends fail on purpose. */
function nothingFailsForOutages({ events, notifications }: AllTables): Invariant {
  const ends = [
    ...events.map((row) => ({ ...row, mustFail: false })),
    ...notifications.map((row) => ({ ...row, mustFail: row.user_id.startsWith(failingUser) })),
  ];
  return invariant(
    "2. and 4. FAILED is what fails by itself, and nothing else",
    ends,
    ({ status, mustFail }) => (status === "FAILED") === mustFail,
  );
}

function nothingIsGivenAway({ log, said }: Evidence): Invariant {
  const lines = [...log.lines.map(({ text }) => text), ...log.strays];
  const texts = Object.entries({ ...said, "the log": lines.join("\n") });
  const leaks = texts.flatMap(([where, text]) => leaksIn(where, text));
  const { says, violations, examples } = invariant(
    "No password and no whole idempotency key is in what services said, or stored as an error",
    leaks,
    () => false,
  );
  return { says, checked: texts.length, violations, examples };
}
