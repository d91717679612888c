// The evidence about one user of a small run, for tests that damage it: two logins at once, a
// suspension and its end, a change of roles, and three sessions, of which two ended alone.
import type { AccountChange, AccountChangeKind } from "./account_clients.ts";
import type { Evidence } from "./evidence.ts";
import type { SessionLook, UserSession } from "./session_watch.ts";

const user = { user_id: "u-1" };
const [alone, out, last] = ["s-1", "s-2", "s-3"];

interface Step {
  kind: AccountChangeKind;
  action: string;
  type: string;
  sentAt: number;
  session?: string;
}

const steps: Step[] = [
  { kind: "login", action: "REGISTER", type: "UserRegistered", sentAt: 0 },
  { kind: "suspend", action: "SUSPEND", type: "UserSuspended", sentAt: 100 },
  { kind: "resume", action: "RESUME", type: "UserResumed", sentAt: 20_000 },
  { kind: "roles", action: "CHANGE_ROLES", type: "RolesChanged", sentAt: 20_100 },
  { kind: "end", action: "END_SESSION", type: "SessionEnded", sentAt: 30_000, session: alone },
  { kind: "logout", action: "END_SESSION", type: "SessionEnded", sentAt: 35_000, session: out },
  { kind: "end all", action: "END_SESSIONS", type: "SessionsEnded", sentAt: 40_000 },
];

export function soundAccounts(): Pick<Evidence, "accounts" | "accountTables"> {
  const login = (isNew: boolean) => JSON.stringify({ user_id: "u-1", is_new: isNew });
  const changes = steps.map(({ kind, sentAt, session = "" }, i): AccountChange => ({
    ...{ kind, traceId: `t-${i}`, subject: "ann", sessionId: session, attempts: 1 },
    ...{ userId: kind === "login" ? "" : "u-1", sentAt, answeredAt: sentAt + 10 },
    answer: { status: 200, body: kind === "login" ? login(true) : "" },
  }));
  const again: AccountChange = {
    ...{ kind: "login", traceId: "t-again", subject: "ann", sessionId: "", attempts: 1 },
    ...{ userId: "", sentAt: 0, answeredAt: 12, answer: { status: 200, body: login(false) } },
  };
  return structuredClone({
    accounts: { changes: [...changes, again], sessions: soundSessions, looks: soundLooks },
    accountTables: soundTables(),
  });
}

const soundSessions: UserSession[] = [
  { sessionId: alone, userId: "u-1", beganAt: 20 },
  { sessionId: out, userId: "u-1", beganAt: 30_020 },
  { sessionId: last, userId: "u-1", beganAt: 35_020 },
];

const soundLooks: SessionLook[] = [
  look(alone, 50, 200),
  look(alone, 10_000, 403), // suspended
  look(alone, 27_000, 200), // resumed
  look(alone, 37_000, 401), // ended
  look(out, 31_000, 200),
  look(out, 45_000, 401), // logged out
  look(last, 36_000, 200),
  look(last, 47_000, 401),
];

function look(sessionId: string, sentAt: number, status: number): SessionLook {
  return { gateway: "gateway-1", sessionId, sentAt, answeredAt: sentAt + 5, status };
}

function soundTables(): Evidence["accountTables"] {
  const rows = steps.map(({ action, type, session = null }, i) => ({
    ...{ ...user, id: `e-${i}`, action, type, session_id: session },
    trace_id: action === "END_SESSION" && session === out ? "of a gateway" : `t-${i}`,
    version: Math.min(i + 1, 4),
  }));
  return {
    users: [{
      ...{ ...user, status: "ACTIVE", version: 4, session_epoch: 2 },
      roles: ["SUPPORT", "USER"],
    }],
    identities: [{ ...user, provider: "p", subject: "ann" }],
    audit: rows.map(({ id, type: _, ...row }) => ({ ...row, audit_id: id })),
    events: rows.map(({ id, action, type, ...row }, i) => ({
      ...{ ...row, event_id: id, event_type: type, order: i + 1, place: `1 ${i}` },
      ...{ status: "PUBLISHED", last_error: null, leased: false },
      session_epoch: action === "END_SESSIONS" ? 2 : 1,
      account_status: action === "SUSPEND" ? "SUSPENDED" : "ACTIVE",
      roles: i < 3 ? ["USER"] : ["SUPPORT", "USER"],
    })),
    endedSessions: [alone, out].map((session_id) => ({ ...user, session_id })),
    inStream: rows.map(({ id }) => id),
  };
}
