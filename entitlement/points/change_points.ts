import { z } from "@hono/zod-openapi";
import type { Command } from "@kenri/shared/commands/command.ts";
import type { CommandRoute } from "@kenri/shared/commands/route.ts";
import { storedKeyOf } from "@kenri/shared/commands/stored_answers.ts";
import { fieldSchema } from "@kenri/shared/http/fields.ts";
import type { OutboxRow } from "@kenri/shared/outbox/outbox_table.ts";
import { query, together, type Transaction, utc } from "@kenri/shared/postgres/postgres.ts";
import { sql } from "@kenri/shared/postgres/sql.ts";
import { uuidv7 } from "@kenri/shared/process/uuid.ts";
import type { ErrorCode } from "../errors.ts";
import { countCommand } from "../metrics.ts";
import { pointAmountSchema, transactionExample, transactionSchema, unitSchema } from "./fields.ts";
import { joinsHolders } from "./held_keys.ts";
import { outsideKey } from "./outside_key.ts";
import {
  after,
  decide,
  type Effect,
  type Kind,
  limitReached,
  type PointsChange,
  type Situation,
  tooFewPoints,
} from "./points.ts";
import { lockLeased, markCarriedOut } from "./reservations.ts";
import { appendPoints, storePointsEvents } from "./store_points.ts";

// Grants and spends of points: their routes, and the command that both are. A due reservation of
// points is the same command without a route.

export const pointsChangeSchema = z.object({
  user_id: fieldSchema().openapi({ description: "The user whose balance is changed" }),
  point_amount: pointAmountSchema(),
  unit: unitSchema().nullish(),
  reason: fieldSchema().openapi({
    description: "Reason of the change: purchase, campaign and so on",
  }),
  source_id: fieldSchema().openapi({ description: "Id of what caused the change" }),
}).openapi("PointsChange");

type Fields = z.infer<typeof pointsChangeSchema>;

export const changedPointsSchema = z.object({
  transaction: transactionSchema,
  balance: z.int().openapi({ description: "The balance after the change" }),
}).openapi("ChangedPoints");

const routes = {
  GRANT: { path: "/v1/points/grants", verb: "Grant", reason: "campaign" },
  SPEND: { path: "/v1/points/spends", verb: "Spend", reason: "purchase" },
};

const refusals = {
  GRANT: {
    description: "The balance would exceed its limit (the answer is stored under the key)",
    messages: { POINTS_LIMIT_REACHED: limitReached },
  },
  SPEND: {
    description: "The balance is too low (the answer is stored under the key)",
    messages: { INSUFFICIENT_POINTS: tooFewPoints },
  },
} satisfies Record<Kind, { description: string; messages: Partial<Record<ErrorCode, string>> }>;

export interface PointsOptions {
  unit: string; // where a request names none
  maxBalance: number;
}

export function pointsRoute(
  kind: Kind,
  { unit }: PointsOptions,
): CommandRoute<Fields, PointsChange> {
  const { path, verb, reason } = routes[kind];
  const example = { user_id: "ann", point_amount: 100, reason, source_id: `${reason}-1` };
  return {
    route: {
      method: "post",
      path,
      scope: "points:write",
      operationId: `${verb.toLowerCase()}Points`,
      tags: ["Points"],
      summary: `${verb} points`,
      description:
        "The transaction, its event and this answer are committed together. The same request " +
        "with the same key returns the same answer, byte for byte.",
      responses: {
        200: {
          description: "The transaction, and the balance after it",
          content: {
            "application/json": { schema: changedPointsSchema, example: answerExample(kind) },
          },
        },
      },
    },
    key: { advice: "the id of what caused the change is a good key", example: `${reason}-1` },
    body: { schema: pointsChangeSchema, example },
    refusals: refusals[kind],
    toInput: (fields, sender) => ({
      kind,
      userId: fields.user_id,
      unit: fields.unit ?? unit,
      pointAmount: fields.point_amount,
      source: fields.reason,
      sourceId: fields.source_id,
      ...outsideKey(sender),
    }),
    count: (result) => countCommand(`POINTS_${kind}`, result),
  };
}

function answerExample(kind: Kind): z.input<typeof changedPointsSchema> {
  const point_amount = kind === "GRANT" ? 100 : -100;
  const balance = kind === "GRANT" ? 100 : 0;
  const { reason } = routes[kind];
  const own = { kind, point_amount, balance_after: balance, reason, source_id: `${reason}-1` };
  return { transaction: { ...transactionExample, ...own }, balance };
}

export function pointsCommand(
  { maxBalance, idempotencyTtlMs }: PointsOptions & { idempotencyTtlMs: number },
): Command<PointsChange, Situation, Effect, OutboxRow> {
  return {
    name: "points",
    answerTtlMs: idempotencyTtlMs,
    identityOf: (change) => {
      if (change.reservation) return undefined;
      const { kind, userId, unit, pointAmount, source, sourceId } = change;
      const request = [`${kind} POINTS`, userId, unit, pointAmount, source, sourceId] as const;
      return { key: storedKeyOf(change), request };
    },
    locksOf: (change) => [balanceLock(change)],
    find: (tx, changes) => findSituations(tx, changes, maxBalance),
    decide,
    fold: { subjectOf: balanceLock, after },
    apply: {
      event: storePointsEvents,
      transaction: appendPoints,
      done: (tx, done) =>
        markCarriedOut(
          tx,
          done.map(({ row, transactionId }) => ({ row, result: { transactionId } })),
        ),
    },
  };
}

// Three parts, because the lock of a right has two and that of a user one.
export function balanceLock({ userId, unit }: { userId: string; unit: string }): string {
  return JSON.stringify(["points", userId, unit]);
}

async function findSituations(
  tx: Transaction,
  changes: PointsChange[],
  maxBalance: number,
): Promise<Situation[]> {
  const [held, found] = await together([
    lockLeased(tx, changes.map(({ reservation }) => reservation)),
    findBalances(tx, changes),
  ]);
  return found.map((row, i) => ({
    ...row,
    maxBalance,
    id: uuidv7(),
    holdsReservation: held.has(changes[i]?.reservation?.id ?? ""),
  }));
}

type Found = Pick<Situation, "balance" | "version" | "at" | "knownId" | "keyIsReserved">;

function findBalances(tx: Transaction, changes: PointsChange[]): Promise<Found[]> {
  return query<Found>(
    tx,
    sql`
    select coalesce(root.balance, 0) as balance, coalesce(root.version, 0) as version,
      ${utc(sql`greatest(clock_timestamp(), root.updated_at + interval '1 microsecond')`)} as at,
      known.id as "knownId",
      reserved.id is not null or erased.digest is not null as "keyIsReserved"
    from unnest(
      ${changes.map(({ userId }) => userId)}::text[],
      ${changes.map(({ unit }) => unit)}::text[],
      ${changes.map(storedKeyOf)}::text[],
      ${changes.map(({ caller }) => caller)}::text[],
      ${changes.map(({ idempotencyKey }) => idempotencyKey)}::text[]
    ) with ordinality as wanted (user_id, unit, stored_key, caller, idempotency_key, position)
    left join point_root root
      on root.user_id = wanted.user_id
      and root.unit = wanted.unit
    ${joinsHolders}
    order by wanted.position`,
  );
}
