import { z } from "@hono/zod-openapi";
import type { Context } from "hono";
import type { ScopedRoute } from "../http/openapi.ts";
import { ApiError } from "../http/errors.ts";
import { fieldSchema } from "../http/fields.ts";
import { operationFields, operationRoute, readOperation } from "./operations.ts";
import { uuidv7 } from "../process/uuid.ts";

// A user is erased in each service by itself. What is left of them is a pseudonym, which is made of
// the operation's id: so a row that was erased leads to who did it and why, and to nobody else.

export function pseudonymOf(operationId: string): string {
  return `erased-${operationId}`;
}

const pseudonym = /^erased-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

const bodySchema = z.object({
  user_id: fieldSchema(),
  // The database writes it in small letters, and pseudonyms are made of it in both places.
  operation_id: z.uuid().transform((id) => id.toLowerCase()).optional().openapi({
    description: "Of the erasure that this goes on with, in this service or the other one",
  }),
  cursor: z.string().optional(),
  ...operationFields,
});

export type ErasureBody = z.input<typeof bodySchema>;

const answerSchema = z.object({
  operation_id: z.uuid(),
  outcome: z.enum(["ERASED", "WOULD_BE_ERASED", "WAITING"]),
  waiting: z.int().openapi({ description: "Events on their way; nothing is erased before that" }),
  rows: z.record(z.string(), z.int()).openapi({ description: "How many of each table" }),
  next_cursor: z.string().optional(),
}).openapi("Erased");

export type ErasureAnswer = z.infer<typeof answerSchema>;

export function eraseUserRoute(service: string): ScopedRoute {
  return operationRoute(
    `/operations/${service}/erase-user`,
    "Erase a user",
    "Puts a pseudonym in place of the user, and forgets what leads to the person",
    bodySchema,
    answerSchema,
  );
}

export interface Erasure {
  userId: string;
  operationId: string;
  cursor: string | undefined;
  who: string;
  reason: string;
  dryRun: boolean;
}

export async function readErasure(context: Context): Promise<Erasure> {
  const body = await readOperation(context, bodySchema);
  const { user_id: userId, who, reason } = body;
  if (pseudonym.test(userId)) {
    throw new ApiError("BAD_REQUEST", "user_id is the pseudonym of a user who was erased");
  }
  // The record of the operation stays.
  if (names(reason, userId)) throw new ApiError("BAD_REQUEST", "reason must not name the user");
  const operationId = body.operation_id ?? uuidv7();
  return { userId, operationId, cursor: body.cursor, who, reason, dryRun: body.dry_run };
}

// As a word of its own: a user may be called as some words begin.
function names(text: string, userId: string): boolean {
  const word = "[\\p{L}\\p{N}]";
  const literal = userId.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&");
  return new RegExp(`(?<!${word})${literal}(?!${word})`, "u").test(text);
}

export type ErasedRows = Record<string, number>;

export interface Erased {
  waiting: number;
  rows: ErasedRows;
  next_cursor?: string | undefined;
}

export function erasedAnswer({ operationId, dryRun }: Erasure, done: Erased): Response {
  const outcome = done.waiting > 0 ? "WAITING" : dryRun ? "WOULD_BE_ERASED" : "ERASED";
  return Response.json({ operation_id: operationId, outcome, ...done });
}
