// Everything that is known of what a violation names, in the order in which it happened.
import type { Invariant } from "../../tests/invariants/invariant.ts";
import { ask } from "../../tests/asking.ts";
import type { Evidence } from "./evidence.ts";
import { textOf } from "./plan.ts";
import type { Stack } from "./stack.ts";

interface Entry {
  at: number;
  text: string;
}

const maxLines = 200;

/** One for each example of each violated invariant. */
export async function timelinesOf(
  invariants: Invariant[],
  evidence: Evidence,
  owners: Stack["owners"],
): Promise<string> {
  const parts: string[] = [];
  for (const { says, violations, examples } of invariants) {
    if (violations === 0) continue;
    parts.push(`=== ${says}: ${violations} violations`);
    for (const example of examples) {
      parts.push(`--- ${example.slice(0, 2_000)}`, await timelineOf(example, evidence, owners));
    }
  }
  return parts.join("\n\n");
}

async function timelineOf(
  example: string,
  evidence: Evidence,
  owners: Stack["owners"],
): Promise<string> {
  const names = namesIn(example);
  const rows = [
    ...await rowsOf(owners.entitlement, entitlementTables, names),
    ...await rowsOf(owners.notification, notificationTables, names),
  ];
  const ids = [...names, ...rows.flatMap((row) => row.match(uuids) ?? [])];
  const isNamed = (text: string) => ids.some((id) => text.includes(id));
  const entries: Entry[] = [
    ...evidence.told.filter(({ request }) => isNamed(JSON.stringify(request)))
      .flatMap((told): Entry[] => [
        { at: told.sentAt, text: `asked     ${told.kind} ${JSON.stringify(told.request)}` },
        {
          at: told.answeredAt || Infinity,
          text: `answered  ${told.request.key} ${JSON.stringify([told.tries, told.answer])}`,
        },
      ]),
    ...evidence.log.lines.filter(({ text }) => isNamed(text))
      .map(({ at, text }) => ({ at, text: `log       ${text}` })),
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

const uuids = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;

/** What a row or a line of the log can be recognised by. */
function namesIn(example: string): string[] {
  const fields = example.match(/"(key|user|user_id|request_id|idem_key)":"([^"]+)"/g) ?? [];
  const keys = fields.map((field) => field.split('"')[3] ?? "");
  return [...new Set([...keys, ...example.match(uuids) ?? []])];
}

const entitlementTables = [
  "entitlements",
  "idempotency_keys",
  "outbox_events",
  "entitlement_audit",
];
const notificationTables = [
  "processed_events",
  "notifications",
  "notification_dlq",
];

async function rowsOf(url: string, tables: string[], names: string[]): Promise<string[]> {
  const found: string[] = [];
  for (const table of tables) {
    const rows = await ask<{ row: unknown }>(
      url,
      `select to_jsonb(t) as row from ${table} t
       where exists (select from unnest($1::text[]) name where strpos(to_jsonb(t)::text, name) > 0)
       limit 40`,
      [names],
    ).catch((error) => [{ row: String(error) }]);
    found.push(...rows.map(({ row }) => `row       ${table} ${JSON.stringify(row)}`));
  }
  return found;
}
