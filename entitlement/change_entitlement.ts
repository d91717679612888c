import { z } from "@hono/zod-openapi";
import type { Command } from "@kenri/shared/commands/command.ts";
import type { CommandRoute } from "@kenri/shared/commands/route.ts";
import { storedKeyOf } from "@kenri/shared/commands/stored_answers.ts";
import { fieldSchema } from "@kenri/shared/http/fields.ts";
import { query, together, type Transaction, utc } from "@kenri/shared/postgres/postgres.ts";
import { sql } from "@kenri/shared/postgres/sql.ts";
import { uuidv7 } from "@kenri/shared/process/uuid.ts";
import { locksOf } from "./change_locks.ts";
import { decide, type Effect, type Situation } from "./decide_change.ts";
import { type Action, type Change, statusAfter } from "./entitlement.ts";
import type { ErrorCode } from "./errors.ts";
import { countCommand } from "./metrics.ts";
import type { OutboxRow } from "@kenri/shared/outbox/outbox_table.ts";
import { outsideKey } from "./points/outside_key.ts";
import { lockLeased, markCarriedOut } from "./points/reservations.ts";
import { appendChanges, storeEvents } from "./store_changes.ts";

// Grants and revokes: their routes, and the command that both are. A due reservation of a right is
// the same command without a route.

export const changeSchema = z.object({
  user_id: fieldSchema().openapi({ description: "The user whose entitlement is changed" }),
  stock_keeping_unit: fieldSchema().openapi({ description: "The item" }),
  reason: fieldSchema().openapi({
    description: "Reason of the change: purchase, refund and so on",
  }),
  purchase_id: fieldSchema().openapi({ description: "Id of the purchase that caused the change" }),
}).openapi("EntitlementChange");

type Fields = z.infer<typeof changeSchema>;

export const changedSchema = z.object({
  user_id: z.string(),
  stock_keeping_unit: z.string(),
  status: z.enum(["ACTIVE", "REVOKED"]),
  version: z.int().min(1).openapi({
    description: "Number of changes so far; the first change is version 1",
  }),
  updated_at: z.iso.datetime().openapi({ description: "Time of the last change, in UTC" }),
}).openapi("ChangedEntitlement");

const routes = {
  GRANT: { path: "/v1/entitlements/grants", verb: "Grant", reason: "purchase", version: 1 },
  REVOKE: { path: "/v1/entitlements/revokes", verb: "Revoke", reason: "refund", version: 2 },
};

export function changeRoute(action: Action): CommandRoute<Fields, Change> {
  const { path, verb, reason, version } = routes[action];
  const status = statusAfter[action];
  const named = { user_id: "ann", stock_keeping_unit: "book" };
  const example = { ...named, status, version, updated_at: "2026-01-02T03:04:05.678901Z" };
  return {
    route: {
      method: "post",
      path,
      scope: "entitlements:write",
      operationId: `${verb.toLowerCase()}Entitlement`,
      tags: ["Entitlements"],
      summary: `${verb} a user's right to one stock keeping unit`,
      description:
        "The change, its event and this answer are committed together. The same request " +
        "with the same key returns the same answer, byte for byte.",
      responses: {
        200: {
          description: `The entitlement after the change, ${status}`,
          content: { "application/json": { schema: changedSchema, example } },
        },
      },
    },
    key: { advice: "the purchase id is a good key", example: "purchase-1" },
    body: { schema: changeSchema, example: { ...named, reason, purchase_id: "purchase-1" } },
    refusals: {
      description:
        "The entitlement already has this status, or the user has as many entitlements " +
        "as allowed (both answers are stored under the key)",
      messages: {
        ENTITLEMENT_STATE_CONFLICT: `already ${status}`,
        ENTITLEMENT_LIMIT_REACHED: "the user has as many entitlements as allowed",
      } satisfies Partial<Record<ErrorCode, string>>,
    },
    toInput: (fields, sender) => ({
      action,
      userId: fields.user_id,
      stockKeepingUnit: fields.stock_keeping_unit,
      reason: fields.reason,
      purchaseId: fields.purchase_id,
      ...outsideKey(sender),
    }),
    count: (result) => countCommand(action, result),
  };
}

export interface CommitOptions {
  idempotencyTtlMs: number;
  maxPerUser?: number | undefined; // counts entitlements of any status
}

export function changeCommand(
  { idempotencyTtlMs, maxPerUser }: CommitOptions,
): Command<Change, Situation, Effect, OutboxRow> {
  return {
    name: "changes",
    answerTtlMs: idempotencyTtlMs,
    identityOf: (change) => {
      if (change.reservation) return undefined;
      const { action, userId, stockKeepingUnit, reason, purchaseId } = change;
      const request = [action, userId, stockKeepingUnit, reason, purchaseId] as const;
      return { key: storedKeyOf(change), request };
    },
    locksOf: (change) => locksOf(change, maxPerUser !== undefined),
    find: (tx, changes) => findSituations(tx, changes, maxPerUser),
    decide,
    apply: {
      event: storeEvents,
      change: appendChanges,
      done: (tx, done) =>
        markCarriedOut(tx, done.map(({ row, outcome }) => ({ row, result: { outcome } }))),
    },
  };
}

async function findSituations(
  tx: Transaction,
  changes: Change[],
  maxPerUser: number | undefined,
): Promise<Situation[]> {
  const [held, states, hasCapacity] = await together([
    lockLeased(tx, changes.map(({ reservation }) => reservation)),
    findStates(tx, changes),
    maxPerUser === undefined ? undefined : findCapacity(tx, changes, maxPerUser),
  ]);
  return states.map((state, i) => ({
    ...state,
    eventId: uuidv7(),
    hasCapacity: hasCapacity?.[i] ?? true,
    holdsReservation: held.has(changes[i]?.reservation?.id ?? ""),
  }));
}

type State = Pick<Situation, "status" | "version" | "at">;

function findStates(tx: Transaction, changes: Change[]): Promise<State[]> {
  return query<State>(
    tx,
    sql`
    select entitlement.status, entitlement.version,
      ${
      utc(sql`greatest(clock_timestamp(), entitlement.updated_at + interval '1 microsecond')`)
    } as at
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
