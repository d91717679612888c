import { z } from "@hono/zod-openapi";
import type { Context } from "hono";
import type { ScopedRoute } from "../http/openapi.ts";
import { ApiError } from "../http/errors.ts";
import { errorAnswer, fieldSchema, isStorableTime, problemsOf } from "../http/fields.ts";
import { readJson } from "../http/body.ts";
import { uuidv7 } from "../process/uuid.ts";

// A change that an operator makes. Each names who makes it and why, and is kept in the log of
// operations.

export const operationFields = {
  who: fieldSchema().openapi({
    description: "Replaced by the name of the caller's credential, if there is one",
  }),
  reason: fieldSchema(),
  dry_run: z.boolean("must be true or false").default(false),
};

// A time as people write it, with any offset and precision.
export function momentSchema(): z.ZodISODateTime {
  return z.iso.datetime({ offset: true, error: "must be a time such as 2026-01-02T03:04:05Z" })
    .refine(
      isStorableTime,
      "must be after the year 0, offset by less than 16 hours, in 40 characters",
    );
}

export interface Operation {
  id: string;
  who: string;
  reason: string;
}

export function newOperation({ who, reason }: { who: string; reason: string }): Operation {
  return { id: uuidv7(), who, reason };
}

// A caller with a credential can't act under another name.
export async function readOperation<Schema extends z.ZodType>(
  { req, get }: Context,
  schema: Schema,
): Promise<z.output<Schema>> {
  const body = await readJson(req.raw);
  const who = get("caller")?.name;
  const isNamed = who && typeof body === "object" && body !== null;
  return valid(schema.safeParse(isNamed ? { ...body, who } : body));
}

export function valid<Value>(parsed: z.ZodSafeParseResult<Value>): Value {
  if (!parsed.success) throw new ApiError("BAD_REQUEST", problemsOf(parsed.error));
  return parsed.data;
}

export function operationRoute(
  path: string,
  summary: string,
  description: string,
  body: z.ZodType,
  answer: z.ZodType,
): ScopedRoute {
  return {
    method: "post",
    path,
    scope: "operations:write",
    summary,
    description,
    request: { body: { required: true, content: { "application/json": { schema: body } } } },
    responses: {
      200: {
        description: "What was changed, or with dry_run would be; changing nothing is no error",
        content: { "application/json": { schema: answer } },
      },
      400: errorAnswer("The body or a field is missing or invalid"),
      408: errorAnswer("The body took too long to arrive"),
      413: errorAnswer("The body is over 16 KiB"),
      415: errorAnswer("The body is not JSON"),
    },
  };
}
