// Everything that is known about an event that violates an invariant, in the order in which it
// happened.
import type { Invariant } from "./invariants/invariant.ts";
import type { ChaosOwners } from "./run.ts";
import { itemOf } from "../load/any_request.ts";
import { ask } from "../servers/asking.ts";
import type { SentRequest } from "./clients.ts";
import type { Evidence } from "./evidence.ts";
import { textOf } from "./plan.ts";

interface Entry {
  at: number;
  text: string;
}

const maxLines = 200;

/** Returns a timeline for each example of each violated invariant. */
export async function timelinesOf(
  invariants: Invariant[],
  evidence: Evidence,
  owners: ChaosOwners,
): Promise<string> {
  const parts: string[] = [];
  for (const { statement, violations, examples } of invariants) {
    if (violations === 0) continue;
    parts.push(`=== ${statement}: ${violations} violations`);
    for (const example of examples) {
      parts.push(`--- ${example.slice(0, 2_000)}`, await timelineOf(example, evidence, owners));
    }
  }
  return parts.join("\n\n");
}

async function timelineOf(
  example: string,
  evidence: Evidence,
  owners: ChaosOwners,
): Promise<string> {
  const subject = subjectOf(example);
  const rows = [
    ...await rowsOf(owners.entitlement, entitlementTables, subject),
    ...await rowsOf(owners.notification, notificationTables, subject),
    ...await rowsOf(owners.account, accountTables, subject),
  ];
  const ids = [...subject.ids, ...rows.flatMap(idsIn)];
  const isAbout = (text: string) => ids.some((id) => text.includes(id));
  const entries: Entry[] = [
    ...evidence.requests.filter((one) => isAbout(`"${one.request.key}"`) || isOf(one, subject))
      .flatMap((sent): Entry[] => [
        { at: sent.sentAt, text: `asked     ${sent.kind} ${JSON.stringify(sent.request)}` },
        {
          at: sent.answeredAt || Infinity,
          text: `answered  ${sent.request.key} ${JSON.stringify([sent.attempts, sent.answer])}`,
        },
      ]),
    ...accountEntries(evidence.accounts, isAbout),
    ...matchEntries(evidence.matches, isAbout),
    ...evidence.log.lines.filter(({ text }) => isAbout(text))
      .map(({ at, text }) => ({ at, text: `log       ${text}` })),
    ...evidence.received.filter(({ send_id }) => isAbout(send_id))
      .map(({ at, url, send_id, status }) => ({
        at,
        text: `received  ${url} ${send_id}, answered with ${status ?? "nothing"}`,
      })),
  ];
  const times = entries.map(({ at }) => at).filter(Number.isFinite);
  const [from, until] = [Math.min(...times) - 10_000, Math.max(...times) + 10_000];
  const faults = evidence.injected.filter((one) => one.from < until && one.until > from)
    .flatMap((one): Entry[] => [
      { at: one.from, text: `fault     ${textOf(one.fault).trim()}` },
      { at: one.until, text: `over      ${one.fault.number} ${one.note}` },
    ]);
  const lines = [...entries, ...faults].sort((a, b) => a.at - b.at)
    .map(({ at, text }) =>
      `${Number.isFinite(at) ? new Date(at).toISOString() : "never"}  ${text}`
    );
  return [...lines.slice(0, maxLines), ...rows].join("\n");
}

function accountEntries(
  { changes, looks }: Evidence["accounts"],
  isAbout: (text: string) => boolean,
): Entry[] {
  return [
    ...changes.filter(({ traceId, userId, sessionId }) =>
      isAbout(`${traceId} ${userId} ${sessionId}`)
    )
      .flatMap(({ sentAt, answeredAt, ...change }): Entry[] => [
        { at: sentAt, text: `asked     ${change.kind} ${change.traceId} ${change.sessionId}` },
        { at: answeredAt || Infinity, text: `answered  ${JSON.stringify(change)}` },
      ]),
    ...looks.filter(({ sessionId }) => isAbout(sessionId)).map((
      { sentAt, answeredAt, ...look },
    ) => ({
      at: answeredAt,
      text: `looked    ${JSON.stringify(look)}, asked ${Math.round(answeredAt - sentAt)} ms before`,
    })),
  ];
}

function matchEntries(
  { calls, wipedStores, wipedStreams }: Evidence["matches"],
  isAbout: (text: string) => boolean,
): Entry[] {
  return [
    ...calls.filter(({ ticketId, key, answer }) => isAbout(`${ticketId} ${key} ${answer?.body}`))
      .flatMap(({ sentAt, answeredAt, ...call }): Entry[] => [
        { at: sentAt, text: `asked     ${call.kind} ${call.userId} ${call.key}` },
        { at: answeredAt || Infinity, text: `answered  ${JSON.stringify(call)}` },
      ]),
    ...wipedStores.flatMap(({ at, tickets }) =>
      tickets.filter(({ ticket_id }) => isAbout(ticket_id))
        .map((row) => ({ at, text: `wiped     ${JSON.stringify(row)}` }))
    ),
    ...wipedStreams.flatMap(({ at, events }) =>
      events.filter(({ event_id, ticket_id }) => isAbout(`${event_id} ${ticket_id}`))
        .map((event) => ({ at, text: `wiped     ${JSON.stringify(event)}` }))
    ),
  ];
}

/** Identifies the rows and lines that belong to a violation. */
interface Subject {
  ids: string[];
  user: string | undefined;
  sku: string | undefined;
  version: number | undefined;
}

const uuids = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;

/** The event, its notification, and the key of its request. */
function idsIn(row: string): string[] {
  const keys = [...row.matchAll(/"(request_id|idem_key)": ("[^"]+")/g)].map(([, , key]) => key);
  return [...row.match(uuids) ?? [], ...keys.filter((key) => key !== undefined)];
}

const versions = /version\\?":\s*(\d+)/;

function subjectOf(example: string): Subject {
  const field = (name: string) => new RegExp(`"${name}":("[^"]+")`).exec(example)?.[1];
  const keys = ["key", "request_id", "idem_key"].flatMap((name) => field(name) ?? []);
  const version = versions.exec(example)?.[1];
  return {
    ids: [...new Set([...keys, ...example.match(uuids) ?? []])],
    user: field("user_id") ?? field("user"),
    sku: field("stock_keeping_unit") ?? field("sku"),
    version: version === undefined ? undefined : Number(version),
  };
}

/** Whether it is about the same entitlement or balance, and the same version or an adjacent one. */
function isOf({ request, answer }: SentRequest, { user, sku, version }: Subject): boolean {
  return `"${request.user}"` === user && `"${itemOf(request)}"` === sku &&
    isNear(answer?.body ?? "", version);
}

function isNear(text: string, version: number | undefined): boolean {
  const found = versions.exec(text)?.[1];
  return version === undefined || found === undefined || Math.abs(Number(found) - version) <= 1;
}

const entitlementTables = [
  "entitlements",
  "idempotency_keys",
  "outbox_events",
  "entitlement_audit",
  "point_root",
  "point_transactions",
  "point_reservations",
  "reservation_attempts",
];
const notificationTables = [
  "processed_events",
  "notifications",
  "notification_dlq",
  "outbox_orders",
  "order_attempts",
  "idempo_ledger",
];

const accountTables = [
  "users",
  "identities",
  "account_roles",
  "audit_logs",
  "ended_sessions",
  "outbox_events",
  "outbox_attempts",
];

async function rowsOf(url: string, tables: string[], subject: Subject): Promise<string[]> {
  const { ids, user, sku, version } = subject;
  const found: string[] = [];
  for (const table of tables) {
    const rows = await ask<{ row: string }>(
      url,
      `select row from (select to_jsonb(t)::text as row from ${table} t) rows
       where exists (select from unnest($1::text[]) id where strpos(row, id) > 0)
         or (strpos(row, $2) > 0 and strpos(row, $3) > 0)
       limit 1000`,
      [ids, user ?? "none", sku ?? "none"],
    ).catch((error) => [{ row: String(error) }]);
    found.push(
      ...rows.filter(({ row }) => isNear(row, version))
        .map(({ row }) => `row       ${table} ${row}`),
    );
  }
  return found;
}
