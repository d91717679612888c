import type { Command } from "@kenri/shared/commands/command.ts";
import { storedKeyOf } from "@kenri/shared/commands/stored_answers.ts";
import { query, together, type Transaction } from "@kenri/shared/postgres/postgres.ts";
import { sql } from "@kenri/shared/postgres/sql.ts";
import { uuidv7 } from "@kenri/shared/process/uuid.ts";
import { locksOf } from "./change_locks.ts";
import { decide, type Effect, type Situation } from "./decide_change.ts";
import type { Change } from "./entitlement.ts";
import type { OutboxRow } from "./outbox.ts";
import { appendChanges, storeEvents } from "./store_changes.ts";

export interface CommitOptions {
  idempotencyTtlMs: number;
  maxPerUser?: number | undefined; // counts entitlements of any status
}

// Grants and revokes are one command, so they share a batch.
export function changeCommand(
  { idempotencyTtlMs, maxPerUser }: CommitOptions,
): Command<Change, Situation, Effect, OutboxRow> {
  return {
    name: "changes",
    answerTtlMs: idempotencyTtlMs,
    identityOf: (change) => {
      const { action, userId, stockKeepingUnit, reason, purchaseId } = change;
      const request = [action, userId, stockKeepingUnit, reason, purchaseId] as const;
      return { key: storedKeyOf(change), request };
    },
    locksOf: (change) => locksOf(change, maxPerUser !== undefined),
    find: (tx, changes) => findSituations(tx, changes, maxPerUser),
    decide,
    apply: { event: storeEvents, change: appendChanges },
  };
}

async function findSituations(
  tx: Transaction,
  changes: Change[],
  maxPerUser: number | undefined,
): Promise<Situation[]> {
  const [states, hasCapacity] = await together([
    findStates(tx, changes),
    maxPerUser === undefined ? undefined : findCapacity(tx, changes, maxPerUser),
  ]);
  return states.map((state, i) => ({
    ...state,
    eventId: uuidv7(),
    hasCapacity: hasCapacity?.[i] ?? true,
  }));
}

type State = Pick<Situation, "status" | "version" | "at">;

function findStates(tx: Transaction, changes: Change[]): Promise<State[]> {
  return query<State>(
    tx,
    sql`
    select entitlement.status, entitlement.version,
      to_char(
        greatest(clock_timestamp(), entitlement.updated_at + interval '1 microsecond')
          at time zone 'UTC',
        'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as at
    from unnest(
      ${changes.map(({ userId }) => userId)}::text[],
      ${changes.map(({ stockKeepingUnit }) => stockKeepingUnit)}::text[]
    ) with ordinality as wanted (user_id, stock_keeping_unit, position)
    left join entitlements entitlement
      on entitlement.user_id = wanted.user_id
      and entitlement.stock_keeping_unit = wanted.stock_keeping_unit
    order by wanted.position`,
  );
}

// Whether the user of each change may have one more entitlement.
async function findCapacity(
  tx: Transaction,
  changes: Change[],
  maxPerUser: number,
): Promise<boolean[]> {
  const rows = await query<{ has_capacity: boolean }>(
    tx,
    sql`
    select (
      select count(*) from (
        select from entitlements
        where entitlements.user_id = wanted.user_id
        limit ${maxPerUser}) as counted) < ${maxPerUser} as has_capacity
    from unnest(${changes.map(({ userId }) => userId)}::text[])
      with ordinality as wanted (user_id, position)
    order by wanted.position`,
  );
  return rows.map(({ has_capacity }) => has_capacity);
}
