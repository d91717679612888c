// What a service may answer that wants to control a terminal.

// ESC, a window title, the clipboard (OSC 52), CSI in one character, bells, right-to-left text, a line
// separator, an invisible character.
export const hostile =
  "a\x1b[2J\x1b]0;t\x07\x1b]52;c;cm0gLXJm\x07\x9b2J\x9d0;t\x9c\b\u202egpj.\u2066" +
  "\u2028\u200b\u3164\u{e0041}\r\nb";
export const steers = /[^\n\P{C}]|[\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u;

const at = "2026-01-02T03:04:05.678Z";
const step = {
  at,
  step: hostile,
  begun_at: hostile,
  worker: hostile,
  error: hostile,
  who: hostile,
};
const row = {
  ...{ event_id: hostile, user_id: hostile, stock_keeping_unit: hostile, aggregate_key: hostile },
  ...{ version: hostile, type: hostile, status: hostile, trace_id: hostile, caller: hostile },
  ...{ idempotency_key: hostile, created_at: at, next_retry_at: hostile, lease_until: hostile },
  ...{ locked_by: hostile, last_error: hostile, layer: hostile, id: hostile, error: hostile },
  ...{ since: hostile, age_seconds: 5, attempts: hostile, payload: { [hostile]: hostile } },
  ...{ count: 3, oldest: at, outcome: hostile, why: hostile, state: hostile, occurred_at: hostile },
  ...{
    kind: hostile,
    at: hostile,
    audit_id: hostile,
    says: hostile,
    done_at: hostile,
    who: hostile,
  },
  ...{ reason: hostile, items: [hostile], steps: [{ ...step, reason: hostile }] },
};
// It contains every member that any command reads.
export const everything = {
  ...{ dead_letters: [row], errors: [row], events: [row], operations: [row], problems: [row] },
  ...{ unreceived: [row], oldest: [row], waiting: hostile, oldest_waiting_seconds: 100 },
  ...{ nats: false, undelivered: hostile, unacknowledged: hostile, last_published_at: hostile },
  orders: {
    ...{ oldest: [row], waiting: hostile, oldest_waiting_seconds: 100, parked: hostile },
    ...{ oldest_parked_seconds: hostile, endpoints: { FAILING: hostile, [hostile]: hostile } },
  },
  ...{ undelivered_points: hostile, unacknowledged_points: hostile },
  ...{ proven_until: at, checked_at: at, key: { idempotency_key: hostile, at, status: hostile } },
  ...{ replayed: hostile, complete: true, before: at, entitlements: 1, reached: 1, unhashed: 0 },
  ...{
    erased: 0,
    hashed: 1,
    marks: "1",
    unhashed_marks: "0",
    late: 0,
    rows: { [hostile]: 3 },
    operation_id: hostile,
  },
  ...{ states: { MISSING: 1, [hostile]: 1 } },
};

// Members that differ from route to route.
const points = {
  ...{ unit: hostile, balance: 1, updated_at: hostile, due_at: hostile, reservation_id: hostile },
  ...{ point_amount: hostile, attempt_count: hostile, transaction_id: hostile },
  ...{ balance_after: hostile, source_id: hostile },
};
const several = [{ ...row, ...points }];
const ofRoute: Record<string, Record<string, unknown>> = {
  status: {
    reservations: {
      ...{ waiting: hostile, oldest_waiting_seconds: 100, oldest: several },
      ...{ upcoming: hostile, next_due_at: hostile },
    },
  },
  upcoming: { reservations: several },
  user: { reservations: several, balances: several, transactions: several },
  find: {
    accounts: [{
      ...{ user_id: hostile, display_name: hostile, locale: hostile, status: hostile },
      ...{ roles: [hostile], version: hostile, session_epoch: hostile, ended_sessions: hostile },
      ...{ created_at: hostile, updated_at: hostile },
      identities: [{ ...{ provider: hostile, subject: hostile }, last_login_at: hostile }],
      audit: [{ event_id: hostile, action: hostile, actor: hostile, reason: hostile }],
    }],
  },
  suspend: { outcome: "CHANGED" },
  roles: { outcome: "CHANGED" },
  verify: { reservations: 1, balances: 1, transactions: 1, problems: several },
};

export function answerTo(request: Request, answer: Record<string, unknown> = everything): Response {
  const route = new URL(request.url).pathname.split("/").at(-1) ?? "";
  return Response.json({ ...answer, ...ofRoute[route] });
}
