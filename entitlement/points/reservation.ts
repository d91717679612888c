import { z } from "@hono/zod-openapi";
import type { Handler } from "hono";
import { callerOf } from "@kenri/shared/access/caller.ts";
import { ApiError } from "@kenri/shared/http/errors.ts";
import { errorAnswer } from "@kenri/shared/http/fields.ts";
import type { ScopedRoute } from "@kenri/shared/http/openapi.ts";
import { pathPart } from "@kenri/shared/http/route.ts";
import { type Database, query, utc } from "@kenri/shared/postgres/postgres.ts";
import { list, literal, type Sql, sql } from "@kenri/shared/postgres/sql.ts";
import { uuidPattern } from "@kenri/shared/process/uuid.ts";
import type { Scope } from "@kenri/proto/scopes.ts";
import { changedSchema } from "../change_entitlement.ts";
import type { ReservationContent } from "./reservations.ts";

// A reservation as its caller sees it, and the routes that show one.

export type ReservationKind = ReservationContent["kind"];
export const statuses = ["PENDING", "PROCESSING", "DONE", "FAILED", "CANCELLED"] as const;

export interface Reservation {
  id: string;
  kind: ReservationKind;
  user_id: string;
  unit: string | null;
  point_amount: number | null;
  stock_keeping_unit: string | null;
  source: string | null;
  source_id: string | null;
  execute_at: string;
  status: typeof statuses[number];
  created_at: string;
  transaction_id: string | null;
  outcome: { status: number; body: unknown } | null;
  done_at: string | null;
  attempt_count: number;
  last_error: string | null;
}

// Of the table, without an alias.
export const reservationColumns: Sql = sql`id, kind, user_id, unit, point_amount,
      stock_keeping_unit, source, source_id, status, transaction_id, outcome, attempt_count,
      last_error, ${utc(sql`execute_at`)} as execute_at, ${utc(sql`created_at`)} as created_at,
      ${utc(sql`done_at`)} as done_at`;

// What kind of reservation a path is about. Callers of points need not have the scopes of rights.
export interface Family {
  path: string;
  tag: string;
  noun: string;
  operations: string; // the end of the ids of its operations
  kinds: ReservationKind[];
  write: Scope;
  read: Scope;
  schema: z.ZodObject;
  example: Record<string, unknown>;
}

const decided = {
  status: z.enum(statuses).openapi({
    description:
      "PENDING until it is due, and between attempts; PROCESSING while it is carried out",
  }),
  created_at: z.iso.datetime(),
  done_at: z.iso.datetime().optional().openapi({ description: "When it was done or cancelled" }),
  attempt_count: z.int().optional().openapi({ description: "Failed attempts" }),
  last_error: z.string().nullable().optional(),
};

const exampleId = "019b7c2e-5a7e-7c3a-9a51-7d2f0e6f1a02";
const waiting = {
  execute_at: "2026-01-02T03:04:05.000000Z",
  status: "PENDING",
  created_at: "2026-01-01T00:00:00.000000Z",
};

export const pointsReservationSchema = z.object({
  reservation_id: z.uuid(),
  user_id: z.string(),
  unit: z.string(),
  point_amount: z.int(),
  execute_at: z.iso.datetime(),
  ...decided,
  transaction_id: z.uuid().optional().openapi({
    description: "The transaction that carried it out",
  }),
}).openapi("PointReservation");

export const pointsFamily: Family = {
  path: "/v1/points/reservations",
  tag: "Points",
  noun: "points",
  operations: "PointReservation",
  kinds: ["POINTS"],
  write: "points:write",
  read: "points:read",
  schema: pointsReservationSchema,
  example: {
    reservation_id: exampleId,
    user_id: "ann",
    unit: "points",
    point_amount: 100,
    ...waiting,
  },
};

export const rightReservationSchema = z.object({
  reservation_id: z.uuid(),
  action: z.enum(["GRANT", "REVOKE"]),
  user_id: z.string(),
  stock_keeping_unit: z.string(),
  reason: z.string(),
  purchase_id: z.string(),
  execute_at: z.iso.datetime(),
  ...decided,
  outcome: z.object({
    status: z.int(),
    body: z.union([changedSchema, z.object({ code: z.string(), message: z.string() })]),
  }).optional().openapi({
    description:
      "The answer to the change, as a request would get it; a refusal is an outcome, too",
  }),
}).openapi("EntitlementReservation");

export const rightsFamily: Family = {
  path: "/v1/entitlements/reservations",
  tag: "Entitlements",
  noun: "a grant or revoke",
  operations: "EntitlementReservation",
  kinds: ["GRANT", "REVOKE"],
  write: "entitlements:write",
  read: "entitlements:read",
  schema: rightReservationSchema,
  example: {
    reservation_id: exampleId,
    action: "GRANT",
    user_id: "ann",
    stock_keeping_unit: "book",
    reason: "purchase",
    purchase_id: "purchase-1",
    ...waiting,
  },
};

export function shown(reservation: Reservation): Record<string, unknown> {
  const { id, kind, status, execute_at, created_at, outcome, transaction_id } = reservation;
  const { done_at, attempt_count, last_error } = reservation;
  const isDecided = status === "DONE" || status === "FAILED" || status === "CANCELLED";
  return {
    reservation_id: id,
    ...(kind === "POINTS" ? pointsOf(reservation) : rightOf(reservation)),
    execute_at,
    status,
    created_at,
    ...(transaction_id ? { transaction_id } : {}),
    ...(outcome ? { outcome } : {}),
    ...(done_at ? { done_at } : {}),
    ...(isDecided ? { attempt_count, last_error } : {}),
  };
}

function pointsOf({ user_id, unit, point_amount }: Reservation) {
  return { user_id, unit, point_amount };
}

function rightOf({ kind, user_id, stock_keeping_unit, source, source_id }: Reservation) {
  return { action: kind, user_id, stock_keeping_unit, reason: source, purchase_id: source_id };
}

export const noReservation = "no such reservation";
export const reservationPath = z.object({
  reservation_id: z.string().openapi({ example: exampleId }),
});

export const withoutReservation = {
  400: errorAnswer("The reservation_id is invalid", {
    BAD_REQUEST: "reservation_id must be percent-encoded UTF-8",
  }),
  404: errorAnswer("The caller has no such reservation", { NOT_FOUND: noReservation }),
};

export function reservationRoute(
  { path, tag, noun, operations, read, schema, example }: Family,
): ScopedRoute {
  return {
    method: "get",
    path: `${path}/{reservation_id}`,
    scope: read,
    operationId: `find${operations}`,
    tags: [tag],
    summary: `Look up a reservation of ${noun}`,
    description: "Callers see only their own reservations.",
    request: { params: reservationPath },
    responses: {
      200: {
        description: "The reservation, and how it ended if it has ended",
        content: { "application/json": { schema, example } },
      },
      ...withoutReservation,
    },
  };
}

export function findReservation(database: Database, { kinds }: Family): Handler {
  return async (context) => {
    const id = pathPart(context.req, "reservation_id");
    const { name: caller } = callerOf(context);
    const [found] = uuidPattern.test(id)
      ? await query<Reservation & Record<string, unknown>>(
        database,
        sql`
        select ${reservationColumns}
        from point_reservations
        where id = ${id}
          and caller = ${caller}
          and kind in (${list(kinds.map(literal))})`,
      )
      : [];
    if (!found) throw new ApiError("NOT_FOUND", noReservation);
    return Response.json(shown(found));
  };
}
