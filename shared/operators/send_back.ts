import { z } from "@hono/zod-openapi";
import type { Handler } from "hono";
import { pageFields, pageOf, readCursor } from "../http/cursor.ts";
import { type DeadLetter, type DeadLetters, readId, tableOf } from "./dead_letters.ts";
import type { ScopedRoute } from "../http/openapi.ts";
import { textSchema } from "../http/fields.ts";
import { ApiError } from "../http/errors.ts";
import type { Database } from "../postgres/postgres.ts";
import type { Wakeup } from "../process/signals.ts";
import { deadRows, type DeadTable } from "./dead_rows.ts";
import {
  newOperation,
  type Operation,
  operationFields,
  operationRoute,
  readOperation,
} from "./operations.ts";

// Sends dead letters back, so that they are tried again with all their attempts: one, several, or
// all with one error, a page at a time. Each table changes only rows that are dead letters at that
// moment, so a repeated or concurrent request has no further effect.

export interface SendBack extends DeadLetters {
  sendBack(dead: DeadLetter[], operation: Operation): Promise<SentBack>;
}

export interface SentBack {
  moved: string[];
  refused?: Map<string, string>; // reason by id
}

/** A layer whose dead letters one statement moves; those that it moved are worked on at once. */
export function deadLayer(
  database: Database,
  table: DeadTable,
  wake: Wakeup,
  move: (ids: string[], operation: Operation) => Promise<string[]>,
): SendBack {
  return {
    layer: table.layer,
    ...deadRows<DeadLetter>(database, {
      ...table,
      columns: `'${table.layer}' as layer, ${table.columns}`,
    }),
    sendBack: async (dead, operation) => {
      const moved = await move(dead.map(({ id }) => id), operation);
      if (moved.length > 0) wake.trigger();
      return { moved };
    },
  };
}

const maxIds = 200;

const bodySchema = z.object({
  layer: z.string().optional(),
  ids: z.array(z.string()).min(1, "must name at least one").max(
    maxIds,
    `must name at most ${maxIds}`,
  ).optional(),
  error: textSchema().optional(),
  ...operationFields,
  ...pageFields(),
});

export type SendBackBody = z.input<typeof bodySchema>;

const answerSchema = z.object({
  operation_id: z.uuid().nullable(),
  dead_letters: z.array(z.object({
    layer: z.string(),
    id: z.string(),
    event_id: z.string().nullable(),
    error: z.string().nullable(),
    outcome: z.enum(["SENT_BACK", "WOULD_BE_SENT_BACK", "NOT_DEAD", "REFUSED"]),
    why: z.string().optional(),
  })),
  next_cursor: z.string().optional(),
}).openapi("SentBack");

export type SendBackAnswer = z.infer<typeof answerSchema>;

export function sendBackRoute(service: string): ScopedRoute {
  return operationRoute(
    `/operations/${service}/dead-letters/send-back`,
    "Send dead letters back",
    "Tries them again: those with the ids, or one page of those with the error",
    bodySchema,
    answerSchema,
  );
}

export function sendBack(tables: SendBack[]): Handler {
  return async (context) => {
    const { layer, ids, error, who, reason, dry_run, limit, cursor } = await readOperation(
      context,
      bodySchema,
    );
    if ((ids === undefined) === (error === undefined)) {
      throw new ApiError("BAD_REQUEST", "exactly one of ids, error is required");
    }
    const table = tableOf(tables, layer);
    const wanted = ids && [...new Set(ids.map((id) => readId(table, id)))];
    const [after] = readCursor(cursor, z.tuple([table.idSchema])) ?? [];
    const found = wanted
      ? await table.findByIds(wanted)
      : await table.find({ after, error, limit: limit + 1 });
    const { rows, next_cursor } = pageOf(found, wanted ? maxIds : limit, ({ id }) => [id]);
    const operation = newOperation({ who, reason });
    const { moved, refused } = dry_run || rows.length === 0
      ? { moved: [] }
      : await table.sendBack(rows, operation);
    const outcomeOf = (id: string) => {
      if (dry_run) return { outcome: "WOULD_BE_SENT_BACK" };
      if (refused?.has(id)) return { outcome: "REFUSED", why: refused.get(id) };
      return { outcome: moved.includes(id) ? "SENT_BACK" : "NOT_DEAD" };
    };
    const gone = wanted?.filter((id) => !rows.some((row) => row.id === id)) ?? [];
    return Response.json({
      operation_id: moved.length > 0 ? operation.id : null,
      dead_letters: [
        ...rows.map(({ layer, id, event_id, error }) => ({
          layer,
          id,
          event_id,
          error,
          ...outcomeOf(id),
        })),
        ...gone.map((id) => ({
          layer: table.layer,
          id,
          event_id: null,
          error: null,
          outcome: "NOT_DEAD",
        })),
      ],
      next_cursor,
    });
  };
}
