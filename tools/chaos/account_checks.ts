// What must hold of accounts and sessions in a chaos run: each acknowledged change is recorded once,
// and gateways let in whom they should.
import type { AccountChange, AccountEvidence } from "./account_clients.ts";
import type { Evidence } from "./evidence.ts";
import { type Injected, wasDone } from "./inject.ts";
import { accountInvariantsOf } from "./invariants/account_invariants.ts";
import type { AccountTables } from "./invariants/account_tables.ts";
import { type Invariant, invariant } from "./invariants/invariant.ts";
import { areExplainedBy } from "./run_invariants.ts";
import { boundMs, type SessionLook, type UserSession } from "./session_watch.ts";

export function accountChecks(evidence: Evidence): Invariant[] {
  const { accountTables: tables, accounts } = evidence;
  return [
    ...accountInvariantsOf(tables),
    noEventOfAccountsFails(tables),
    accountRequestsAreAnswered(accounts),
    accountChangesAreRecorded(accounts, tables),
    loginsLeadToOneUser(accounts, tables),
    nobodyIsLetInAfterTheBound(evidence),
    nobodyIsRefusedWithoutReason(accounts),
  ];
}

function noEventOfAccountsFails({ events }: AccountTables): Invariant {
  return invariant(
    "17. No event of an account is FAILED",
    events,
    ({ status }) => status !== "FAILED",
  );
}

function accountRequestsAreAnswered({ changes }: AccountEvidence): Invariant {
  return invariant(
    "20. Every request about an account was answered in the end, and none was refused",
    changes.filter(({ kind }) => kind !== "logout"),
    ({ answer }) => answer !== undefined && answer.status < 300,
  );
}

const isDone = ({ answer }: AccountChange) => answer !== undefined && answer.status < 300;

const ofTrace = ({ trace_id }: { trace_id: string }) => trace_id;
const ofSession = ({ session_id }: { session_id: string | null }) => session_id ?? "";

/** To end all sessions once more is a change of its own; all else is not changed a second time. */
function accountChangesAreRecorded(
  { changes }: AccountEvidence,
  { audit, events }: AccountTables,
): Invariant {
  const auditOf = new Map([...Map.groupBy(audit, ofTrace), ...Map.groupBy(audit, ofSession)]);
  const eventsOf = new Map([...Map.groupBy(events, ofTrace), ...Map.groupBy(events, ofSession)]);
  return invariant(
    "20. An acknowledged change of an account has exactly one audit row and one published event",
    changes.filter((change) => change.kind !== "login" && isDone(change)),
    ({ kind, traceId, userId, sessionId, attempts }) => {
      const cause = kind === "logout" ? sessionId : traceId;
      const rows = auditOf.get(cause) ?? [];
      const announced = eventsOf.get(cause) ?? [];
      const atMost = kind === "end all" ? attempts : 1;
      return rows.length >= 1 && rows.length <= atMost && announced.length === rows.length &&
        announced.every(({ status }) => status === "PUBLISHED") &&
        rows.every(({ user_id }) => user_id === userId);
    },
  );
}

function loginsLeadToOneUser(
  { changes }: AccountEvidence,
  { identities }: AccountTables,
): Invariant {
  const logins = changes.filter((change) => change.kind === "login" && isDone(change));
  const loginsOf = Map.groupBy(logins, ({ subject }) => subject);
  const userOf = new Map(identities.map(({ subject, user_id }) => [subject, user_id]));
  const answered = ({ answer }: AccountChange) => JSON.parse(answer?.body ?? "{}");
  return invariant(
    "20. All logins of an identity lead to one user, who is new to at most one of them",
    [...loginsOf],
    ([subject, all]) =>
      all.every((login) => answered(login).user_id === userOf.get(subject)) &&
      all.filter((login) => answered(login).is_new).length <= 1,
  );
}

interface Judged {
  look: SessionLook;
  session: UserSession;
  since: number; // when what stands against it was acknowledged
}

function nobodyIsLetInAfterTheBound(evidence: Evidence): Invariant {
  const judged = looksWithSession(evidence.accounts).flatMap(({ look, session, standing }) => {
    const since = standing.refusedSince(look);
    return since === undefined ? [] : [{ look, session, since }];
  });
  return invariant(
    `21. No session is let in ${boundMs / 1_000} s after it ended or its user was suspended`,
    judged,
    (one) => one.look.status !== 200 || isCutOff(evidence, one),
  );
}

function nobodyIsRefusedWithoutReason(accounts: AccountEvidence): Invariant {
  return invariant(
    "21. No session is refused that nothing stands against",
    looksWithSession(accounts).filter(({ look, standing }) => standing.mustBeLetIn(look)),
    ({ look: { status } }) => status === undefined || status === 200 || status >= 500,
  );
}

function looksWithSession({ looks, sessions, changes }: AccountEvidence) {
  const changesOf = Map.groupBy(changes, ({ userId }) => userId);
  const known = new Map(sessions.map((session) => {
    const standing = standingOf(session, changesOf.get(session.userId) ?? []);
    return [session.sessionId, { session, standing }];
  }));
  return looks.flatMap((look) => {
    const found = known.get(look.sessionId);
    return found ? [{ look, ...found }] : [];
  });
}

interface Standing {
  /** When that was acknowledged for which the look must be refused; undefined if it need not be. */
  refusedSince(look: SessionLook): number | undefined;
  mustBeLetIn(look: SessionLook): boolean;
}

const isOfOne = (kind: AccountChange["kind"]) => kind === "end" || kind === "logout";

/** What the client knows for certain, and what may have happened, at the time of a look. */
function standingOf({ sessionId, beganAt }: UserSession, changes: AccountChange[]): Standing {
  const ends = changes.filter(({ kind, sentAt, ...change }) =>
    kind === "end all" ? sentAt >= beganAt : isOfOne(kind) && change.sessionId === sessionId
  );
  const suspensions = changes.filter(({ kind }) => kind === "suspend")
    .map((suspend) => ({
      suspend,
      resume: changes.find(({ kind, sentAt }) => kind === "resume" && sentAt > suspend.sentAt),
    }));
  return {
    refusedSince: ({ sentAt, answeredAt }) =>
      [
        ...ends,
        ...suspensions.filter(({ resume }) => answeredAt < (resume?.sentAt ?? Infinity))
          .map(({ suspend }) => suspend),
      ].filter((change) => isDone(change) && change.answeredAt + boundMs <= sentAt)
        .map((change) => change.answeredAt).sort((a, b) => a - b)[0],
    mustBeLetIn: ({ sentAt, answeredAt }) =>
      ends.every((change) => answeredAt < change.sentAt) &&
      suspensions.every(({ suspend, resume }) =>
        answeredAt < suspend.sentAt ||
        (resume && isDone(resume) && sentAt > resume.answeredAt + boundMs)
      ),
  };
}

/** A gateway that could not reach the account service asks again after a second. */
const breakerMs = 2_000;

/**
 * A gateway that reads the stream but can't reach the account service uses what it knows. It can't know
 * a change that another replica of that service made and could not publish.
 */
function isCutOff(
  { injected }: Evidence,
  { look: { gateway, answeredAt }, since }: Judged,
): boolean {
  const account = gateway.replace("gateway", "account");
  const done = injected.filter(wasDone);
  const asking = done.filter(({ fault: { target } }) =>
    [account, `${gateway} > ${account}`, `${account} > database`, "account database"].includes(
      target,
    )
  ).map(({ from, until }) => ({ from, until: until + breakerMs }));
  return areExplainedBy(asking, since, answeredAt) &&
    areExplainedBy(done.filter(keepsEvents), since, answeredAt);
}

function keepsEvents({ fault: { target, kind } }: Injected): boolean {
  return kind !== "clock" && /^(nats|account-\d( > nats)?|gateway-\d > nats)$/.test(target);
}
