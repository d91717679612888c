// What must hold of accounts and sessions in a chaos run: each acknowledged change is recorded once,
// and gateways let in whom they should.
import type { AccountChange, AccountEvidence } from "./account_clients.ts";
import type { Evidence } from "./evidence.ts";
import { accountInvariantsOf } from "./invariants/account_invariants.ts";
import type { AccountTables } from "./invariants/account_tables.ts";
import { type Invariant, invariant } from "./invariants/invariant.ts";
import { boundMs, type SessionLook, type UserSession } from "./session_watch.ts";

export function accountChecks(evidence: Evidence): Invariant[] {
  const { accountTables: tables, accounts } = evidence;
  return [
    ...accountInvariantsOf(tables),
    noEventOfAccountsFails(tables),
    accountRequestsAreAnswered(accounts),
    accountChangesAreRecorded(accounts, tables),
    loginsLeadToOneUser(accounts, tables),
    nobodyIsLetInAfterTheBound(accounts),
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

function nobodyIsLetInAfterTheBound(accounts: AccountEvidence): Invariant {
  return invariant(
    `21. No session is let in ${boundMs / 1_000} s after it ended or its user was suspended`,
    looksWithSession(accounts).filter(({ look, standing }) => standing.mustBeRefused(look)),
    ({ look: { status } }) => status !== 200,
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
  const standings = new Map(
    sessions.map((session) => [
      session.sessionId,
      standingOf(session, changesOf.get(session.userId) ?? []),
    ]),
  );
  return looks.flatMap((look) => {
    const standing = standings.get(look.sessionId);
    return standing ? [{ look, standing }] : [];
  });
}

interface Standing {
  mustBeRefused(look: SessionLook): boolean;
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
    mustBeRefused: ({ sentAt, answeredAt }) =>
      [
        ...ends,
        ...suspensions.filter(({ resume }) => answeredAt < (resume?.sentAt ?? Infinity))
          .map(({ suspend }) => suspend),
      ].some((change) => isDone(change) && change.answeredAt + boundMs <= sentAt),
    mustBeLetIn: ({ sentAt, answeredAt }) =>
      ends.every((change) => answeredAt < change.sentAt) &&
      suspensions.every(({ suspend, resume }) =>
        answeredAt < suspend.sentAt ||
        (resume && isDone(resume) && sentAt > resume.answeredAt + boundMs)
      ),
  };
}
