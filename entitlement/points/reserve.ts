import { z } from "@hono/zod-openapi";
import { type Decision, keyConflict } from "@kenri/shared/commands/answer.ts";
import type { Command } from "@kenri/shared/commands/command.ts";
import type { Body, CommandRoute, Sender } from "@kenri/shared/commands/route.ts";
import { storedKeyOf } from "@kenri/shared/commands/stored_answers.ts";
import { fieldSchema } from "@kenri/shared/http/fields.ts";
import { changeSchema } from "../change_entitlement.ts";
import { countCommand } from "../metrics.ts";
import { executeAtSchema, notTooFarAhead } from "./execute_at.ts";
import { pointAmountSchema, unitSchema } from "./fields.ts";
import { outsideKey } from "./outside_key.ts";
import {
  type Family,
  pointsFamily,
  type Reservation,
  type ReservationKind,
  rightsFamily,
  shown,
} from "./reservation.ts";
import type { ReservationRow } from "./reservations.ts";
import {
  type Accepted,
  findSituations,
  type Situation,
  storeReservations,
} from "./store_reservations.ts";

// Reservations are accepted: their routes, and the command that both are.

export interface Reserve extends Sender {
  kind: ReservationKind;
  userId: string;
  unit: string | null;
  pointAmount: number | null;
  stockKeepingUnit: string | null;
  source: string | null;
  sourceId: string | null;
  executeAt: string;
}

export const reservePointsSchema = z.object({
  user_id: fieldSchema().openapi({ description: "The user who gets the points" }),
  point_amount: pointAmountSchema(),
  execute_at: executeAtSchema(),
  unit: unitSchema().nullish(),
  reason: fieldSchema().nullish().openapi({
    description: "Reason of the transaction: purchase, campaign and so on; without it, reservation",
  }),
  source_id: fieldSchema().nullish().openapi({
    description: "Id of what caused the reservation; without it, the reservation's own id",
  }),
}).openapi("ReservePoints");

export const reserveRightSchema = z.object({
  action: z.enum(["GRANT", "REVOKE"], "must be GRANT or REVOKE"),
  ...changeSchema.shape,
  execute_at: executeAtSchema(),
}).openapi("ReserveEntitlement");

export interface ReserveOptions {
  unit: string;
  maxAheadMs: number;
}

export function reservePointsRoute(
  { unit, maxAheadMs }: ReserveOptions,
): CommandRoute<z.infer<typeof reservePointsSchema>, Reserve> {
  return {
    ...reserveRoute(pointsFamily, {
      schema: reservePointsSchema,
      example: { user_id: "ann", point_amount: 100, execute_at: "2026-01-02T12:04:05+09:00" },
    }),
    toInput: (fields, sender) => ({
      kind: "POINTS",
      userId: fields.user_id,
      unit: fields.unit ?? unit,
      pointAmount: fields.point_amount,
      stockKeepingUnit: null,
      source: fields.reason ?? null,
      sourceId: fields.source_id ?? null,
      executeAt: notTooFarAhead(fields.execute_at, maxAheadMs),
      ...outsideKey(sender),
    }),
    count: (result) => countCommand("POINTS_RESERVE", result),
  };
}

export function reserveRightRoute(
  { maxAheadMs }: ReserveOptions,
): CommandRoute<z.infer<typeof reserveRightSchema>, Reserve> {
  return {
    ...reserveRoute(rightsFamily, {
      schema: reserveRightSchema,
      example: {
        action: "GRANT",
        user_id: "ann",
        stock_keeping_unit: "book",
        reason: "purchase",
        purchase_id: "purchase-1",
        execute_at: "2026-01-02T12:04:05+09:00",
      },
    }),
    toInput: (fields, sender) => ({
      kind: fields.action,
      userId: fields.user_id,
      unit: null,
      pointAmount: null,
      stockKeepingUnit: fields.stock_keeping_unit,
      source: fields.reason,
      sourceId: fields.purchase_id,
      executeAt: notTooFarAhead(fields.execute_at, maxAheadMs),
      ...outsideKey(sender),
    }),
    count: (result) => countCommand("RESERVE", result),
  };
}

function reserveRoute<Fields>(
  { path, write, tag, noun, operations, schema, example }: Family,
  body: Body<Fields>,
): Omit<CommandRoute<Fields, Reserve>, "toInput"> {
  return {
    route: {
      method: "post",
      path,
      scope: write,
      operationId: `make${operations}`,
      tags: [tag],
      summary: `Reserve ${noun} for later`,
      description:
        "The reservation is carried out once, at its time, or as soon as possible if the service " +
        "is unavailable then. The same request with the same key returns the same answer, byte " +
        "for byte; two spellings of one time are the same request.",
      responses: {
        202: {
          description: "The reservation as it was accepted",
          content: { "application/json": { schema, example } },
        },
      },
    },
    key: { advice: "the id of what caused the reservation is a good key", example: "campaign-1" },
    body,
  };
}

export function reserveCommand(
  { idempotencyTtlMs, pollIntervalMs }: { idempotencyTtlMs: number; pollIntervalMs: number },
): Command<Reserve, Situation, Accepted, ReservationRow> {
  return {
    name: "reservations",
    answerTtlMs: idempotencyTtlMs,
    identityOf: (reserve) => {
      const { kind, userId, unit, pointAmount, stockKeepingUnit } = reserve;
      const { source, sourceId, executeAt } = reserve;
      const what = [userId, unit, pointAmount, stockKeepingUnit, source, sourceId] as const;
      return { key: storedKeyOf(reserve), request: [`RESERVE ${kind}`, ...what, executeAt] };
    },
    locksOf: () => [], // reservations have nothing in common
    find: (tx, given) => findSituations(tx, given, pollIntervalMs),
    decide,
    apply: { reservation: storeReservations },
  };
}

function decide(
  reserve: Reserve,
  { id, createdAt, keyIsUsed, isSoon }: Situation,
): Decision<Accepted> {
  if (keyIsUsed) return { answer: keyConflict, effects: [] };
  const reservation: Reservation = {
    id,
    kind: reserve.kind,
    user_id: reserve.userId,
    unit: reserve.unit,
    point_amount: reserve.pointAmount,
    stock_keeping_unit: reserve.stockKeepingUnit,
    source: reserve.source,
    source_id: reserve.sourceId,
    execute_at: reserve.executeAt,
    status: "PENDING",
    created_at: createdAt,
    transaction_id: null,
    outcome: null,
    done_at: null,
    attempt_count: 0,
    last_error: null,
  };
  return {
    answer: { status: 202, body: JSON.stringify(shown(reservation)), outcome: "applied" },
    effects: [{ kind: "reservation", reservation, sender: reserve, isSoon }],
  };
}
