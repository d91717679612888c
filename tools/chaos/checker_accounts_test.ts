// The checker notices each damage to the evidence about accounts and sessions.
import type { Evidence } from "./evidence.ts";
import { type Harm, testHarms } from "./harms.ts";
import { first } from "./sound_evidence.ts";

const lookAt = ({ accounts }: Evidence, time: number) =>
  first(accounts.looks, ({ sentAt }) => sentAt === time);

const harms: Harm[] = [
  [
    "a user has no identity",
    /^16\./,
    ({ accountTables }) => accountTables.identities.length = 0,
  ],
  [
    "an identity has no user",
    /^16\./,
    ({ accountTables }) =>
      accountTables.identities.push({ user_id: "u-2", provider: "p", subject: "kim" }),
  ],
  [
    "a user was registered twice",
    /^16\./,
    ({ accountTables: { audit } }) => audit.push({ ...first(audit), audit_id: "other" }),
  ],
  [
    "an audit row of an account is missing",
    /^17\. Each audit row/,
    ({ accountTables }) => accountTables.audit.pop(),
  ],
  [
    "an event of an account is missing",
    /^17\. Each audit row/,
    ({ accountTables }) => accountTables.events.pop(),
  ],
  [
    "an event of an account is doubled",
    /^17\. Each audit row/,
    ({ accountTables: { events } }) => events.push({ ...first(events), event_id: "other" }),
  ],
  [
    "an event says something else than its audit row",
    /^17\. Each audit row/,
    ({ accountTables: { events } }) => first(events).event_type = "UserUpdated",
  ],
  [
    "an event of an account is not in the stream",
    /^17\. An event/,
    ({ accountTables }) => accountTables.inStream.shift(),
  ],
  [
    "an event of an account is forgotten",
    /^17\. An event/,
    ({ accountTables: { events } }) => first(events).status = "PENDING",
  ],
  [
    "a published event of an account still has a lease",
    /^17\. An event/,
    ({ accountTables: { events } }) => first(events).leased = true,
  ],
  [
    "an outage made an event of an account fail",
    /^17\. No event/,
    ({ accountTables: { events } }) =>
      Object.assign(first(events), { status: "FAILED", last_error: "away" }),
  ],
  [
    "a version of an account is left out",
    /^18\. The changes/,
    ({ accountTables: { audit } }) => audit.forEach((row) => row.version > 2 && row.version++),
  ],
  [
    "an epoch was not counted",
    /^18\. The changes/,
    ({ accountTables: { users } }) => first(users).session_epoch = 1,
  ],
  [
    "an account has another status than its last event",
    /^18\. An account/,
    ({ accountTables: { users } }) => first(users).status = "SUSPENDED",
  ],
  [
    "a role was lost",
    /^18\. An account/,
    ({ accountTables: { users } }) => first(users).roles = [],
  ],
  [
    "an ended session has no row",
    /^19\./,
    ({ accountTables }) => accountTables.endedSessions.length = 0,
  ],
  [
    "a session ended twice",
    /^19\./,
    ({ accountTables: { audit } }) =>
      audit.push(first(audit, ({ action }) => action === "END_SESSION")),
  ],
  [
    "a change of an account was refused",
    /^20\. Every request/,
    ({ accounts: { changes } }) => first(changes).answer = { status: 404, body: "{}" },
  ],
  [
    "a request about an account has no answer",
    /^20\. Every request/,
    ({ accounts: { changes } }) => first(changes).answer = undefined,
  ],
  [
    "an acknowledged suspension is lost",
    /^20\. An acknowledged/,
    ({ accountTables }) => {
      accountTables.audit = accountTables.audit.filter(({ action }) => action !== "SUSPEND");
      accountTables.events = accountTables.events.filter(({ version }) => version !== 2);
    },
  ],
  [
    "a suspension was carried out twice",
    /^20\. An acknowledged/,
    ({ accountTables: { audit, events } }) => {
      audit.push({ ...first(audit.slice(1)), audit_id: "other" });
      events.push({ ...first(events.slice(1)), event_id: "other" });
    },
  ],
  [
    "an acknowledged logout is lost",
    /^20\. An acknowledged/,
    ({ accountTables }) => {
      const isOther = ({ session_id }: { session_id: string | null }) => session_id !== "s-2";
      accountTables.audit = accountTables.audit.filter(isOther);
      accountTables.events = accountTables.events.filter(isOther);
      accountTables.endedSessions = accountTables.endedSessions.filter(isOther);
    },
  ],
  [
    "a login leads to another user",
    /^20\. All logins/,
    ({ accounts: { changes } }) =>
      first(changes).answer = { status: 200, body: '{"user_id":"u-2","is_new":true}' },
  ],
  [
    "two logins registered a user",
    /^20\. All logins/,
    ({ accounts: { changes } }) =>
      first(changes.slice(-1)).answer = { status: 200, body: '{"user_id":"u-1","is_new":true}' },
  ],
  [
    "a suspended user is let in",
    /^21\. No session is let in/,
    (evidence) => lookAt(evidence, 10_000).status = 200,
  ],
  [
    "a session that ended alone is let in",
    /^21\. No session is let in/,
    (evidence) => lookAt(evidence, 37_000).status = 200,
  ],
  [
    "a session is let in after all of its user ended",
    /^21\. No session is let in/,
    (evidence) => lookAt(evidence, 47_000).status = 200,
  ],
  [
    "a session that logged out is let in",
    /^21\. No session is let in/,
    (evidence) => lookAt(evidence, 45_000).status = 200,
  ],
  [
    "a session is refused that nothing stands against",
    /^21\. No session is refused/,
    (evidence) => lookAt(evidence, 50).status = 401,
  ],
  [
    "a user who was resumed is refused",
    /^21\. No session is refused/,
    (evidence) => lookAt(evidence, 27_000).status = 403,
  ],
];
testHarms(harms);
