import { z } from "@hono/zod-openapi";
import type { Context, Handler } from "hono";
import type { ScopedRoute } from "../http/openapi.ts";
import { ApiError } from "../http/errors.ts";
import { fieldSchema } from "../http/fields.ts";
import { operationFields, operationRoute, readOperation } from "./operations.ts";
import { query, type Transaction } from "../postgres/postgres.ts";
import { uuidv7 } from "../process/uuid.ts";

// Each service erases a user from its own database. A pseudonym takes the user's place. It is made
// from the id of the operation, so an erased row leads to who erased it and why, and to nobody
// else.

const pseudonymPattern = /^erased-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

const bodySchema = z.object({
  user_id: fieldSchema(),
  // PostgreSQL writes UUIDs in lower case, and it makes pseudonyms of them as well.
  operation_id: z.uuid().transform((id) => id.toLowerCase()).optional().openapi({
    description: "The erasure to continue, begun in this or in another service",
  }),
  cursor: z.string().optional(),
  ...operationFields,
});

export type ErasureBody = z.input<typeof bodySchema>;

const answerSchema = z.object({
  operation_id: z.uuid(),
  outcome: z.enum(["ERASED", "WOULD_BE_ERASED", "WAITING"]),
  waiting: z.int().openapi({
    description: "Events of the user still on their way; nothing is erased until there are none",
  }),
  rows: z.record(z.string(), z.int()).openapi({ description: "Number of rows by table" }),
  user_id: z.string().optional().openapi({
    description: "How the other services write the id, from a service that reads it in any form",
  }),
  next_cursor: z.string().optional(),
}).openapi("Erased");

export type ErasureAnswer = z.infer<typeof answerSchema>;

export function eraseUserRoute(service: string): ScopedRoute {
  return operationRoute(
    `/operations/${service}/erase-user`,
    "Erase a user",
    "Replaces the user with a pseudonym and removes what identifies the person",
    bodySchema,
    answerSchema,
  );
}

export interface Erasure {
  userId: string;
  operationId: string;
  pseudonym: string;
  cursor: string | undefined;
  who: string;
  reason: string;
  dryRun: boolean;
}

export type ErasedRows = Record<string, number>;

export interface Erased {
  waiting: number;
  rows: ErasedRows;
  user_id?: string | undefined;
  next_cursor?: string | undefined;
}

export function eraseUserWith(erase: (erasure: Erasure) => Promise<Erased>): Handler {
  return async (context) => {
    const erasure = await readErasure(context);
    const { operationId, dryRun } = erasure;
    const erased = await erase(erasure);
    const outcome = erased.waiting > 0 ? "WAITING" : dryRun ? "WOULD_BE_ERASED" : "ERASED";
    return Response.json({ operation_id: operationId, outcome, ...erased });
  };
}

async function readErasure(context: Context): Promise<Erasure> {
  const body = await readOperation(context, bodySchema);
  const { user_id: userId, operation_id: operationId = uuidv7(), cursor, who, reason } = body;
  if (pseudonymPattern.test(userId)) {
    throw new ApiError("BAD_REQUEST", "user_id is the pseudonym of a user who was erased");
  }
  // The operation and its reason stay in the log.
  if (names(reason, userId)) throw new ApiError("BAD_REQUEST", "reason must not name the user");
  const pseudonym = `erased-${operationId}`;
  return { userId, operationId, pseudonym, cursor, who, reason, dryRun: body.dry_run };
}

// Only as a word of its own, because a user id may also be a part of common words.
function names(text: string, userId: string): boolean {
  const word = "[\\p{L}\\p{N}]";
  const literal = userId.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&");
  return new RegExp(`(?<!${word})${literal}(?!${word})`, "u").test(text);
}

// The log states that a user was erased, and not which one. An erasure of several calls is logged
// once.
export async function recordErasure(
  tx: Transaction,
  { operationId, who, reason }: Erasure,
  rows: ErasedRows,
): Promise<void> {
  await query(
    tx,
    `insert into operations (operation_id, kind, layer, who, reason, items)
     values ($1, 'ERASE_USER', 'user', $2, $3, jsonb_build_array($4::jsonb))
     on conflict (operation_id) do nothing`,
    [operationId, who, reason, JSON.stringify(rows)],
  );
  const [{ kind } = {}] = await query<{ kind?: string }>(
    tx,
    "select kind from operations where operation_id = $1",
    [operationId],
  );
  if (kind !== "ERASE_USER") {
    throw new ApiError("BAD_REQUEST", "operation_id belongs to another operation; leave it out");
  }
}
