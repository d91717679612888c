import { z } from "@hono/zod-openapi";
import { firstId, readCursor, timeSchema, writeCursor } from "@kenri/shared/http/cursor.ts";
import { lookRoute } from "@kenri/shared/operators/look_route.ts";
import {
  momentSchema,
  operationFields,
  operationRoute,
  readOperation,
} from "@kenri/shared/operators/operations.ts";
import { type Database, query, utc } from "@kenri/shared/postgres/postgres.ts";
import type { Handler } from "hono";
import { type AuditedEvent, checkAudit, checkedAtOnce, timeBefore } from "./check.ts";
import type { AskReceiver } from "./ask.ts";
import { settleChecked, type SettleParts } from "./settle.ts";

// Reconciliation on demand: each call checks one page of the changes since a given time. Unlike the
// hourly run it continues past events that are still on their way, and does not move its position.

const bodySchema = z.object({
  since: momentSchema(),
  cursor: z.string().optional(),
  grace_seconds: z.int("must be a whole number").min(0, "must be at least 0")
    .max(86_400, "must be at most 86400").optional(),
  ...operationFields,
});

export type ReconcileBody = z.input<typeof bodySchema>;

const eventSchema = z.object({
  event_id: z.uuid(),
  occurred_at: z.string(),
  user_id: z.string(),
  stock_keeping_unit: z.string(),
  version: z.int(),
  state: z.string(),
});

const answerSchema = z.object({
  states: z.record(z.string(), z.int()),
  unreceived: z.array(eventSchema.extend({ mended: z.boolean() })),
  next_cursor: z.string().optional(),
}).openapi("Reconciled");

export type ReconcileAnswer = z.infer<typeof answerSchema>;

export const reconcileRoute = operationRoute(
  "/operations/entitlement/reconcile",
  "Reconcile now",
  "Checks whether changes were received, one page for each call, and republishes those that were not",
  bodySchema,
  answerSchema,
);

export interface ReconcileNowParts extends SettleParts {
  ask: AskReceiver;
  graceSeconds: number;
}

const positionSchema = z.tuple([timeSchema(), z.uuid(), timeSchema()]);

export function reconcileNow(parts: ReconcileNowParts): Handler {
  return async (context) => {
    const { since, cursor, who, reason, dry_run, ...asked } = await readOperation(
      context,
      bodySchema,
    );
    const { database, ask } = parts;
    const graceSeconds = asked.grace_seconds ?? parts.graceSeconds;
    // The first call sets the end. Otherwise a busy service would never reach it.
    const [occurred_at, event_id, until] = readCursor(cursor, positionSchema) ??
      [since, firstId, await timeBefore(database, graceSeconds)] as const;
    const page = await checkAudit(database, ask, {
      after: { occurred_at, event_id },
      until,
      graceSeconds,
    });
    const limits = { who, reason, maxPerEvent: 1_000_000 };
    const republished = dry_run ? new Set() : await settleChecked(parts, page, limits);
    const last = page.at(-1)?.event;
    const isLast = page.length < checkedAtOnce || last === undefined;
    const states = Map.groupBy(page, ({ state }) => state);
    return Response.json({
      states: Object.fromEntries([...states].map(([state, { length }]) => [state, length])),
      unreceived: page.filter(({ state }) => state === "MISSING" || state === "DEAD")
        .map(({ event, state }) => ({ ...event, state, mended: republished.has(event.event_id) })),
      next_cursor: isLast ? undefined : writeCursor([last.occurred_at, last.event_id, until]),
    });
  };
}

const shownAtMost = 200;

const stateSchema = z.object({
  proven_until: z.string(),
  checked_at: z.string(),
  unreceived: z.array(eventSchema.extend({
    found_at: z.string(),
    mended_at: z.string().nullable(),
    mends: z.int(),
  })),
}).openapi("Reconciliation");

export type Reconciliation = z.infer<typeof stateSchema>;

export const reconciliationRoute = lookRoute({
  path: "/debug/entitlement/reconciliation",
  summary: "Reconciliation",
  description:
    "The time up to which all events are known to be received, and the events that were not",
  answer: stateSchema,
  answers: `The first ${shownAtMost} events that were not received, the oldest first`,
});

export function reconciliation(database: Database): Handler {
  return async () => {
    const [[state], unreceived] = await Promise.all([
      findState(database),
      findUnreceived(database),
    ]);
    return Response.json({ ...state, unreceived });
  };
}

export function findState(
  database: Database,
): Promise<{ proven_until: string; checked_at: string }[]> {
  return query(
    database,
    `select ${utc("proven_until")} as proven_until, ${utc("checked_at")} as checked_at
     from reconciliation`,
  );
}

function findUnreceived(database: Database): Promise<(AuditedEvent & Record<string, unknown>)[]> {
  return query(
    database,
    `select event_id, ${utc("occurred_at")} as occurred_at, user_id, stock_keeping_unit, version,
       state, ${utc("found_at")} as found_at, ${utc("mended_at")} as mended_at, mends
     from unreceived_events
     order by event_id
     limit $1`,
    [shownAtMost],
  );
}
