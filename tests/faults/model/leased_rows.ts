// What all tables of leased rows share: how a row of the model is stored in the database, and the
// real functions that claim, keep and settle it.
import type { NewLease } from "../../../shared/queue/handover.ts";
import type { Lease, LeasedRow } from "../../../shared/queue/leased_row.ts";
import type { Database } from "../../../shared/postgres/postgres.ts";
import { type ClaimContext, nothingInHand, type Settlement } from "../../../shared/queue/job.ts";
import { type Changed, type RealCalls, unlessInterrupted, type View } from "./real_calls.ts";
import { type Event, events, type Held, type LeasedTables, type Place, type Row } from "./state.ts";

export interface LeasedCalls<Tables> {
  claim(tables: Tables, claim: Claim): Promise<Changed<Tables, Held[]>>;
  keep(tables: Tables, held: Held[]): Promise<Changed<Tables, Event[]>>; // returns whose lease is kept
  settle(tables: Tables, held: Held, killedBefore?: RegExp): Promise<Changed<Tables, unknown>>;
}

interface Claim {
  limit: number;
  joins: Event[]; // in hand: the rows behind these may be claimed
  locked?: Event | undefined; // by another statement
}

interface Functions<Content, Result> {
  claim(
    database: Database,
    lease: Lease,
    limit: number,
    context: ClaimContext,
  ): Promise<LeasedRow<Content>[]>;
  keep(database: Database, rows: LeasedRow<Content>[], leaseMs: number): Promise<Set<string>>;
  settle(
    database: Database,
    settled: Settlement<LeasedRow<Content>, Result>[],
  ): Promise<Set<string>>;
  resultAt(place: Place | null): Result;
  /** What the work depends on, of what the claim has returned. */
  seenIn?(content: Content): object;
}

interface Views<Tables> {
  ofClaims?: View<Tables>; // and of heartbeats
  ofRow(event: Event): View<Tables>; // of its settle
}

const lease = { worker: "model", leaseMs: 3_600_000 };

export function leasedCalls<Tables extends LeasedTables, Content, Result>(
  real: RealCalls<Tables>,
  { claim, keep, settle, resultAt, seenIn }: Functions<Content, Result>,
  views: Views<Tables>,
): LeasedCalls<Tables> {
  return {
    claim: (tables, { limit, joins, locked }) =>
      real.after(
        tables,
        `claim ${limit} beside ${joins}`,
        async (database) => {
          const context = { ...nothingInHand, tokens: joins.map(tokenOf) };
          return (await claim(database, lease, limit, context)).map((row) => ({
            ...asHeld(row),
            ...(seenIn ? { seen: seenIn(row.content) } : {}),
          }));
        },
        { locked, view: views.ofClaims },
      ),
    keep: (tables, held) =>
      real.after(tables, `keep ${held.map(nameOf)}`, async (database) => {
        const kept = await keep(
          database,
          held.map((row) => asClaimed<Content>(row)),
          lease.leaseMs,
        );
        return [...kept].map(eventOf);
      }, { view: views.ofClaims }),
    settle: (tables, held, killedBefore) =>
      real.after(
        tables,
        `settle ${nameOf(held)} ${JSON.stringify(held.outcome)}`,
        (database) => unlessInterrupted(settle(database, [settlementOf(held, resultAt)])),
        { killedBefore, view: views.ofRow(held.event) },
      ),
  };
}

export function asHeld({ id, attempts }: LeasedRow<unknown>): Held {
  return { event: eventOf(id), attempts, leased: true, outcome: null };
}

// The functions depend on nothing else of a row.
function nameOf({ event, leased }: Held): string {
  return `${event}${leased ? "" : " (stale)"}`;
}

// The row as its holder knows it, even if the lease is lost.
export function asClaimed<Content>(
  { event, leased }: Held,
  content: Content = {} as Content,
): LeasedRow<Content> {
  return {
    id: idOf(event),
    key: events[event]?.key ?? "",
    attempts: 0, // which only the worker reads, as takenOver
    takenOver: false,
    token: leased ? tokenOf(event) : staleToken,
    claimedAt: performance.now(),
    content,
  };
}

function settlementOf<Content, Result>(
  held: Held,
  resultAt: (place: Place | null) => Result,
): Settlement<LeasedRow<Content>, Result> {
  const row = asClaimed<Content>(held);
  switch (held.outcome?.kind) {
    case "done":
      return { row, kind: "done", result: resultAt(held.outcome.place) };
    case "retry":
      return { row, kind: "retry", error: "refused", delayMs: 3_600_000 };
    case "failed":
      return { row, kind: "failed", error: "refused", attempted: held.outcome.attempted };
    case "released":
      return { row, kind: "released", ...held.outcome.later ? { delayMs: 3_600_000 } : {} };
    default:
      return { row, kind: "released" };
  }
}

export const idOf = (event: Event): string => `00000000-0000-7000-8000-00000000000${event}`;
export const eventOf = (id: string): Event => Number(id.at(-1));
export const tokenOf = (event: Event): string => `00000000-0000-4000-8000-00000000000${event}`;
/** A new lease for rows that are handed over. */
export const newLease = (): NewLease => ({ ...lease, token: crypto.randomUUID() });

const today = new Date().setUTCHours(0, 0, 0, 0);
export const bornAt = (event: Event): string => new Date(today + event * 1_000).toISOString();

const staleToken = "00000000-0000-4000-8000-00000000000f";

// The rows as a table that an insert can select from, and the columns it takes from there.

export function asRecords(rows: (Row | null)[], ...more: string[]): string {
  const records = rows.flatMap((row, event) =>
    row
      ? [{ ...row, ...events[event], id: idOf(event), token: tokenOf(event), born: bornAt(event) }]
      : []
  );
  const columns = [
    "id uuid, key text, version bigint, born timestamptz, status text, attempts int, waits boolean",
    "lease text, token uuid",
    ...more,
  ];
  return `json_to_recordset('${JSON.stringify(records)}') as row (${columns.join()})`;
}

export const leasedColumns =
  "status, attempt_count, next_retry_at, locked_at, lease_until, claim_token";

export const leasedValues = `status, attempts,
  case when waits then now() + interval '1 hour' end,
  case when lease <> 'none' then now() end,
  case lease when 'runs' then now() + interval '1 hour'
    when 'over' then now() - interval '1 hour' end,
  case when lease <> 'none' then token end`;

// The columns of a database row, as the model has them.
export const rowOfModel = `status, attempt_count as attempts,
  coalesce(next_retry_at > now(), false) as waits,
  case when lease_until is null then 'none' when lease_until > now() then 'runs' else 'over' end
    as lease,
  claim_token as token`;

export type StoredRow<ModelRow extends Row> = ModelRow & { event_id: string; token: string | null };

export function byEvent<ModelRow extends Row>(
  found: StoredRow<ModelRow>[],
): { rows: (ModelRow | null)[]; tokens: (string | null)[] } {
  const stored = events.map((_, event) => found.find(({ event_id }) => event_id === idOf(event)));
  return {
    rows: stored.map((row) => row ? asModelRow(row) : null),
    tokens: stored.map((row) => row?.token ?? null),
  };
}

function asModelRow<ModelRow extends Row>(stored: StoredRow<ModelRow>): ModelRow {
  const { event_id: _id, token: _token, ...row } = stored;
  return row as unknown as ModelRow;
}
