// The evidence of a small run, for tests that damage it.
import assert from "node:assert/strict";
import type { AnyRequest } from "../load/any_request.ts";
import type { SentRequest } from "./clients.ts";
import type { Evidence } from "./evidence.ts";
import type { Receipt } from "./invariants/order_invariants.ts";
import type { SendLine } from "./service_log.ts";
import { soundAccounts } from "./sound_accounts.ts";
import { soundMatches } from "./sound_matches.ts";

export function first<Item>(items: Item[], fits: (item: Item) => boolean = () => true): Item {
  const found = items.find(fits);
  assert.ok(found);
  return found;
}

const named = (key: string, user = "ann") => ({ key, user, reason: "r", purchase: "p" });
const grant = (key: string, user?: string): AnyRequest => ({
  ...{ action: "GRANT", ...named(key, user), sku: "book" },
});
const revoke = { action: "REVOKE", ...named("key-1"), sku: "book" } as const;
const spend = { action: "POINTS_TAKE", ...named("key-4"), unit: "gems", amount: 3 } as const;

const ofAnn = (item: string, version: number) => ({
  ...{ user_id: "ann", stock_keeping_unit: item, version },
});

/** Without a request it was made when a reservation of the same name came due. */
const changes: { asked?: AnyRequest; due?: string; row: ReturnType<typeof ofAnn> }[] = [
  { asked: grant("key-0"), row: ofAnn("book", 1) },
  { asked: revoke, row: ofAnn("book", 2) },
  { asked: grant("key-2"), row: ofAnn("book", 3) },
  { asked: grant("key-3", "fails-1"), row: { ...ofAnn("book", 1), user_id: "fails-1" } },
  { due: "right", row: ofAnn("pass", 1) },
  { due: "points", row: ofAnn("points:gems", 1) },
  { asked: spend, row: ofAnn("points:gems", 2) },
];
const rows = changes.map(({ asked, due, row }, i) => ({
  ...row,
  key: asked?.key ?? `reservation:${due}`,
  action: asked?.action ?? (due === "points" ? "POINTS_ADD" : "GRANT"),
  event_id: `event-${i}`,
  notification_id: `notification-${i}`,
  fails: row.user_id.startsWith("fails"),
  body: JSON.stringify(asked === spend ? { transaction: row, balance: 2 } : row),
}));

const dueMs = 1_000; // in milliseconds since 1970; what came due then was done a moment later
const pass = { change: "GRANT", sku: "pass" } as const;
const reservations = [
  { id: "points", status: "DONE", what: { unit: "gems", amount: 5 } },
  { id: "cancelled", status: "CANCELLED", what: { unit: "gems", amount: 1 } },
  { id: "right", status: "DONE", answered: 200, what: pass },
  { id: "again", status: "DONE", answered: 409, what: pass },
];

const error = (code: string, message: string) => JSON.stringify({ code, message });
const refusal = error("ENTITLEMENT_STATE_CONFLICT", "already ACTIVE");
const conflict = error("IDEMPOTENCY_KEY_CONFLICT", "used");
const tooLate = error("RESERVATION_STATE_CONFLICT", "already DONE");
const accepted = (id: string) => JSON.stringify({ reservation_id: id });

const orderedAt = 1_000; // in milliseconds since 1970
const plain = {
  action: "ORDER",
  key: "key-order",
  user: "ann",
  reason: "r",
  url: "plain",
} as const;
const endpoints = [
  { endpoint_id: "all", event_types: null, user_id: null, ordering: "key" as const },
  { endpoint_id: "some", event_types: ["GRANT"], user_id: "ann", ordering: "none" as const },
];

const orders = [
  ...endpoints.flatMap(({ endpoint_id, event_types, user_id }) =>
    rows.filter((row) =>
      event_types?.includes(row.action) !== false && (user_id ?? row.user_id) === row.user_id
    ).map(({ user_id, stock_keeping_unit, version, event_id }) => ({
      ...{ user_id, stock_keeping_unit, version, event_id, endpoint_id },
      ...{ id: `${event_id} at ${endpoint_id}`, idempotency_key: `${event_id}:${endpoint_id}` },
      ...{ url: `http://receivers/${endpoint_id}`, send_id: event_id },
    }))
  ),
  {
    ...{ id: "order", idempotency_key: plain.key, url: plain.url, send_id: "order" },
    ...{ endpoint_id: null, event_id: null, user_id: null, stock_keeping_unit: null },
    version: null,
  },
];

/**
 * Three changes of one entitlement, a refused one, and one whose sends fail. The second send was
 * repeated, because its sender was killed. Of four reservations one was cancelled and one was done
 * with a refusal; points were spent. Two endpoints got their events, the first one twice.
 */
export function soundEvidence(): Evidence {
  return {
    requests: soundRequests(),
    tables: soundTables(),
    ...soundAccounts(),
    ...soundMatches(),
    log: {
      lines: [{
        number: 1,
        pid: 2,
        at: 900,
        level: "info",
        message: "Listening on http://127.0.0.1:1",
        text: "",
      }],
      sends: [
        ...[send(0, 10), send(1, 11), send(1, 20, 2), send(2, 30, 2)],
        ...[send(4, 31, 2), send(5, 32, 2), send(6, 33, 2)],
      ],
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
    received: [...orders.keys(), 0].map((i, place) => receipt(i, place)),
    poison: [{ id: "poison-1", kind: "garbage", on: "events", at: 1, isStored: true }],
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
  const cancel = (reservation: string): AnyRequest => ({
    ...{ action: "CANCEL", key: `cancel-${reservation}`, user: "ann", reservation },
    isOfRight: false,
  });
  const sent: [SentRequest["kind"], AnyRequest, status: number, body: string][] = [
    ...changes.flatMap(({ asked }, i): typeof sent =>
      asked ? [["change", asked, 200, first(rows.slice(i)).body]] : []
    ),
    ["change", grant("key-refused"), 409, refusal],
    ["repeat", grant("key-0"), 200, first(rows).body],
    ["key conflict", { ...revoke, key: "key-0" }, 409, conflict],
    ...reservations.map(({ id, what }): typeof sent[0] => {
      const request = { action: "RESERVE", ...named(`key-${id}`), at: dueMs, what } as const;
      return ["change", request, 202, accepted(id)];
    }),
    ["change", cancel("cancelled"), 200, accepted("cancelled")],
    ["change", cancel("points"), 409, tooLate],
    ["change", plain, 202, JSON.stringify({ order_id: "order", status: "PENDING" })],
  ];
  return sent.map(([kind, request, status, body], i) => ({
    ...{ kind, request, isSole: status < 300, sentAt: i * 10, answeredAt: i * 10 + 5 },
    ...{ attempts: { answered: 1 }, answer: { status, body, replayed: false } },
  }));
}

function soundTables(): Evidence["tables"] {
  const at = dueMs * 1_000 + 1;
  const points = rows.filter(({ stock_keeping_unit }) => stock_keeping_unit === "points:gems");
  return structuredClone({
    entitlements: [
      { ...ofAnn("book", 3), status: "ACTIVE" },
      { ...ofAnn("book", 1), user_id: "fails-1", status: "ACTIVE" },
      { ...ofAnn("pass", 1), status: "ACTIVE" },
    ],
    balances: [{ ...ofAnn("points:gems", 2), balance: 2 }],
    transactions: points.map((row, i) => ({
      ...{ ...row, id: row.event_id, idempotency_key: row.key, created_at: at },
      ...{ point_amount: [5, -3][i] ?? 0, balance_after: [5, 2][i] ?? 0 },
      reservation_id: i === 0 ? "points" : null,
    })),
    reservations: reservations.map(({ id, status, answered = null, what }) => ({
      ...{
        id,
        status,
        answered,
        idempotency_key: `key-${id}`,
        user_id: "ann",
        leased: false,
        failures: 0,
      },
      ...{ execute_at: dueMs * 1_000, kind: "unit" in what ? "POINTS" as const : what.change },
      stock_keeping_unit: "unit" in what ? `points:${what.unit}` : what.sku,
      point_amount: "unit" in what ? what.amount : null,
      transaction_id: id === "points" ? first(points).event_id : null,
    })),
    answers: soundRequests()
      .filter(({ kind, request: { action } }) =>
        kind === "change" && action !== "CANCEL" && action !== "ORDER"
      )
      .map(({ request, answer }) => ({
        idem_key: request.key,
        response_code: answer?.status ?? 0,
        response_body: answer?.body ?? "",
      })),
    events: rows.map((row, i) => ({
      ...{ ...row, status: "PUBLISHED", place: `1 ${i}`, last_error: null, leased: false },
    })),
    audit: rows.map((row) => ({ ...row, request_id: row.key, occurred_at: at })),
    processed: rows.map(({ event_id }) => event_id),
    notifications: rows.map((row) => ({
      ...{ ...row, status: row.fails ? "FAILED" : "SENT", has_time: !row.fails, leased: false },
    })),
    deadLetters: rows.filter(({ fails }) => fails),
    endpoints: endpoints.map((row) => ({ ...row, state: "ACTIVE", is_draining: false })),
    orders: orders.map((row) => ({
      ...{ ...row, request_digest: row.send_id, status: "SUCCEEDED", reason: null },
      ...{ failures: 0, leased: false },
    })),
    ledger: orders.map(({ id, idempotency_key, send_id }) => ({
      ...{ idempotency_key, request_digest: send_id, status: "SUCCEEDED", order_id: id },
      decided_at: orderedAt + 100,
    })),
    eventTypes: rows.map(({ event_id, action, user_id }) => ({ event_id, type: action, user_id })),
  });
}

function send(i: number, line: number, pid = 1): SendLine {
  return { ...first(rows.slice(i)), pid, at: 1_000 + line, line };
}

function receipt(i: number, place: number): Receipt {
  const { url, send_id } = first(orders.slice(i));
  return { url, send_id, at: orderedAt + place * 5, body: send_id, status: 200, isSigned: true };
}
