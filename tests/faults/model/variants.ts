// The system with one defect at a time. The explorer must find each.
import { neverQuiet } from "./explore.ts";
import type { Habits, Scope } from "./model.ts";
import type { Rewrite } from "./real_calls.ts";
import { rules } from "./rules.ts";

export interface Variant {
  name: string;
  scope: Scope;
  habits?: Partial<Habits>;
  rewrite?: Rewrite;
  breaks: string;
}

const oneRelay = { events: [0, 1], relays: 1, consumers: 0, deliverers: 0, faults: 1 };
const twoRelays = { ...oneRelay, relays: 2, faults: 2 };
const wholeWay = { ...oneRelay, consumers: 1, deliverers: 1 };
const firing = { ...oneRelay, events: [], relays: 0, reminders: [0], firers: 1 };
const granting = { ...firing, reminders: [], firers: 0, reservations: [0], granters: 1 };
const received = { ...wholeWay, relays: 0 };

const token = /(\w+)\.claim_token = \w+\.token/g;
export const noFence: Rewrite = (text: string): string =>
  text.replace(token, "$1.claim_token is not null");
const noLeaseCheck: Rewrite = (text) =>
  text.replace(token, "true").replaceAll("row.locked_at +", "coalesce(row.locked_at, now()) +");

const leasedByToken = /\(id, claim_token\) in \(\s+select \* from unnest\(([^)]*)\)\)/;
const noCommandFence: Rewrite = (text, killed) =>
  noFence(text, killed).replace(
    leasedByToken,
    "claim_token is not null and id in (select id from unnest($1) as held (id, token))",
  );

const isClaim = (text: string) => text.includes("skip locked");
const withoutEarlier = (text: string) => text.replaceAll("earlier.unfinished::int = 1", "false");

export const variants: Variant[] = [
  {
    name: "A settle checks for a lease, but not for its token",
    scope: twoRelays,
    rewrite: noFence,
    breaks: rules.fence,
  },
  {
    name: "A line goes on before a failure is settled",
    scope: twoRelays,
    habits: { awaitsFailures: false },
    breaks: rules.publishOrder,
  },
  {
    name: "A settle does not check for a lease",
    scope: { ...received, deliverers: 2 },
    rewrite: noLeaseCheck,
    breaks: rules.fence,
  },
  {
    name: "The consumer acks before it commits",
    scope: received,
    habits: { acksFirst: true },
    breaks: neverQuiet,
  },
  {
    name: "A relay does not compare the stream with what it recorded",
    scope: wholeWay,
    habits: { checksForLoss: false },
    breaks: neverQuiet,
  },
  {
    name: "Relays compare only when they connect, and one is not restarted",
    scope: { ...twoRelays, events: [0] },
    habits: { looksAgain: false, startsAgain: false },
    breaks: neverQuiet,
  },
  {
    name: "A claim does not look at the earlier rows of a key",
    scope: { ...twoRelays, faults: 0 },
    rewrite: (text) => isClaim(text) ? withoutEarlier(text) : text,
    breaks: rules.publishOrder,
  },
  {
    name: "A new row is handed over although an earlier one of its key waits",
    scope: { ...oneRelay, faults: 0 },
    rewrite: (text) => isClaim(text) ? text : withoutEarlier(text),
    breaks: rules.publishOrder,
  },
  {
    name: "A claim is not numbered",
    scope: oneRelay,
    habits: { numbersClaims: false },
    breaks: rules.publishOrder,
  },
  {
    name: "A line goes on after a lost lease",
    scope: twoRelays,
    habits: { blocksAfterLoss: false },
    breaks: rules.publishOrder,
  },
  {
    name: "A paused lane never resumes",
    scope: { ...received, events: [0] },
    habits: { putsOff: true, resumesLanes: false },
    breaks: neverQuiet,
  },
  {
    name: "A lane that pauses forgets its rows",
    scope: { ...received, events: [0, 3] },
    habits: { putsOff: true, forgetsRows: true },
    breaks: neverQuiet,
  },
  {
    name: "processed_events and the notification are two transactions",
    scope: received,
    rewrite: (text, killed) =>
      killed ? text.replace(/\) as lease( on true)?$/m, "$& where false") : text,
    breaks: rules.onceEach,
  },
  {
    name: "A notification is FAILED without a dead letter",
    scope: { ...received, faults: 2 },
    rewrite: (text) => text.replace("payload_json, error from changed", "$& where false"),
    breaks: rules.deadLetter,
  },
  {
    name: "Version 2 does not wait for version 1",
    scope: { ...received, faults: 0 },
    rewrite: (text) => text.replace("received.*, version > 1", "received.*, false"),
    breaks: rules.sendOrder,
  },
  {
    name: "Releasing a row uses up an attempt",
    scope: oneRelay,
    rewrite: (text) =>
      text.replace(
        /set status = 'PENDING',(?=\s+next_retry_at)/,
        "$& attempt_count = row.attempt_count + 1,",
      ),
    breaks: rules.ownAttempts,
  },
  {
    name: "An event that was not received is republished, whatever its state is by then",
    scope: { ...wholeWay, events: [0], faults: 1, reconciles: true },
    rewrite: (text) => text.replace(/and status = 'PUBLISHED'(?=\s+order by event_id)/, ""),
    breaks: rules.missing,
  },
  {
    name: "The receiver does not report what may be delivered again",
    scope: { ...wholeWay, events: [0], faults: 0, reconciles: true },
    habits: { reportsUnsettled: false },
    breaks: rules.redelivered,
  },
  {
    name: "A claimed notification still waits for its predecessor",
    scope: { ...received, faults: 0 },
    rewrite: (text) => text.replace(/, awaits_predecessor = false(?=\s+from claimable)/, ""),
    breaks: rules.awaits,
  },
  {
    name: "FIRED and the event of a reminder are two statements",
    scope: firing,
    rewrite: (text, killed) =>
      killed ? text.replace(/insert into outbox_events\s+\([^)]+\)/, "") : text,
    breaks: rules.announced,
  },
  {
    name: "A claim takes reminders that are not due",
    scope: { ...firing, faults: 0 },
    rewrite: (text) => isClaim(text) ? text.replaceAll("row.due_at <= now()", "true") : text,
    breaks: rules.due,
  },
  {
    name: "A due reservation is carried out without its token",
    scope: { ...granting, granters: 2 },
    rewrite: noCommandFence,
    breaks: rules.fence,
  },
  {
    name: "DONE and the transaction of a reservation are two commits",
    scope: granting,
    rewrite: (text, killed) => killed && text === "rollback" ? "commit" : text,
    breaks: rules.grantedOnce,
  },
  {
    name: "A claim takes reservations that are not due",
    scope: { ...granting, faults: 0 },
    rewrite: (text) => isClaim(text) ? text.replaceAll("row.due_at <= now()", "true") : text,
    breaks: rules.due,
  },
  {
    name: "A reservation is cancelled while it is carried out",
    scope: { ...granting, faults: 0 },
    rewrite: (text) =>
      text.includes("for update")
        ? text.replace(" status,", " replace(status, 'PROCESSING', 'PENDING') as status,")
        : text,
    breaks: rules.cancelsOnly,
  },
  {
    name: "Transactions need no key of their own",
    scope: { ...granting, reservations: [], granters: 0, asks: ["grant"], faults: 0 },
    rewrite: (text) =>
      text.replace("on known.idempotency_key = wanted.stored_key", "on false").replace(
        "append_points($1)",
        () =>
          `append_points(
             replace($1, '"idempotency_key":"', '"idempotency_key":"' || random() || ' ')::json)`,
      ),
    breaks: rules.askedOnce,
  },
  {
    name: "A balance is read before it is locked",
    scope: { ...granting, asks: ["grant"], faults: 0 },
    rewrite: (text) =>
      text.replace("pg_advisory_xact_lock(number)", "number").replace(
        "append_points($1)",
        "$& from (select pg_advisory_xact_lock(1)) as locked",
      ),
    breaks: rules.ownAttempts,
  },
];
