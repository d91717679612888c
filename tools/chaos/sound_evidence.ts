// The evidence of a small run without a fault, for tests that damage it.
import assert from "node:assert/strict";
import type { SentRequest } from "./clients.ts";
import type { Evidence } from "./evidence.ts";
import type { SendLine } from "./service_log.ts";

export function first<Item>(items: Item[], fits: (item: Item) => boolean = () => true): Item {
  const found = items.find(fits);
  assert.ok(found);
  return found;
}

const changes = [
  { user: "ann", action: "GRANT", version: 1 },
  { user: "ann", action: "REVOKE", version: 2 },
  { user: "ann", action: "GRANT", version: 3 },
  { user: "fails-1", action: "GRANT", version: 1 },
] as const;
const rows = changes.map(({ user, action, version }, i) => ({
  key: `key-${i}`,
  action,
  user_id: user,
  stock_keeping_unit: "book",
  version,
  event_id: `event-${i}`,
  notification_id: `notification-${i}`,
  fails: user.startsWith("fails"),
  body: JSON.stringify({ user_id: user, stock_keeping_unit: "book", version }),
}));
const refusal = JSON.stringify({ code: "ENTITLEMENT_STATE_CONFLICT", message: "already ACTIVE" });
const conflict = JSON.stringify({ code: "IDEMPOTENCY_KEY_CONFLICT", message: "used" });

/**
 * Three changes of one entitlement, a refused one, and one whose sends fail. The second send was
 * repeated, because its sender was killed.
 */
export function soundEvidence(): Evidence {
  return {
    requests: soundRequests(),
    tables: soundTables(),
    log: {
      lines: [{
        number: 1,
        pid: 2,
        at: 900,
        level: "info",
        message: "Listening on http://127.0.0.1:1",
        text: "",
      }],
      sends: [send(0, 10), send(1, 11), send(1, 20, 2), send(2, 30, 2)],
      stalls: [],
      strays: [],
    },
    injected: [{
      fault: { number: 1, kind: "kill", target: "notification-1", atMs: 0, forMs: 10, amount: 0 },
      from: 1_012,
      until: 1_015,
      note: "",
    }],
    healing: { ms: 1_000, still: undefined, last: undefined },
    stalls: [],
    poison: [{ id: "poison-1", kind: "garbage", at: 1, isStored: true }],
    said: { "metrics of entitlement-1": "up 1" },
    givenUp: [{ kind: "MSG_TERMINATED", poison: "poison-1", has_copy: true }],
    runs: [
      {
        ...{ replica: "notification-1", pid: 1, from: 0, until: 1_012 },
        ...{ asked: "SIGKILL", askedAt: 1_012, code: 137 },
      },
      {
        ...{ replica: "notification-1", pid: 2, from: 1_015, until: 3_000 },
        ...{ asked: "SIGTERM", askedAt: 2_000, code: 0 },
      },
    ],
  };
}

function soundRequests(): SentRequest[] {
  return [
    ...rows.map((row, i) => sent(i, { user: row.user_id, action: row.action }, 200, row.body)),
    sent(4, { key: "key-refused" }, 409, refusal),
    { ...sent(5, { key: "key-0" }, 200, first(rows).body), kind: "repeat" },
    { ...sent(6, { key: "key-0", reason: "other" }, 409, conflict), kind: "key conflict" },
  ];
}

function sent(
  i: number,
  parts: Partial<SentRequest["request"]>,
  status: number,
  body: string,
): SentRequest {
  return {
    request: {
      ...{ key: `key-${i}`, user: "ann", sku: "book", action: "GRANT" },
      ...{ reason: "r", purchase: "p", ...parts },
    },
    kind: "change",
    isSole: status === 200,
    sentAt: i * 10,
    answeredAt: i * 10 + 5,
    attempts: { answered: 1 },
    answer: { status, body, replayed: false },
  };
}

function soundTables(): Evidence["tables"] {
  return structuredClone({
    entitlements: [
      { user_id: "ann", stock_keeping_unit: "book", version: 3, status: "ACTIVE" },
      { user_id: "fails-1", stock_keeping_unit: "book", version: 1, status: "ACTIVE" },
    ],
    answers: [
      ...rows.map(({ key, body }) => ({
        idem_key: key,
        response_code: 200,
        response_body: body,
      })),
      { idem_key: "key-refused", response_code: 409, response_body: refusal },
    ],
    events: rows.map((row, i) => ({
      ...{ ...row, status: "PUBLISHED", place: `1 ${i}`, last_error: null, leased: false },
    })),
    audit: rows.map((row) => ({ ...row, request_id: row.key })),
    processed: rows.map(({ event_id }) => event_id),
    notifications: rows.map((row) => ({
      ...{ ...row, status: row.fails ? "FAILED" : "SENT", has_time: !row.fails, leased: false },
    })),
    deadLetters: rows.filter(({ fails }) => fails),
  });
}

function send(i: number, line: number, pid = 1): SendLine {
  return { ...first(rows.slice(i)), pid, at: 1_000 + line, line };
}
