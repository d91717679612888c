import { z } from "@hono/zod-openapi";
import { type ErrorCode, statusOfCode } from "./errors.ts";

// Schemas for the text that callers send, and the messages for text that does not match.

// The length is counted in characters, not in UTF-16 units. PostgreSQL can't store a lone surrogate
// or a NUL.
export function fieldSchema(): z.ZodString {
  return z.string({
    error: ({ input }) =>
      input === undefined || input === null ? "is required" : "must be a string",
  }).superRefine((value, context) => {
    const problem = problemOf(value);
    if (problem) context.addIssue(problem);
  }).openapi({ minLength: 1, maxLength: 255 });
}

function problemOf(value: string): string | undefined {
  if (value.trim() === "") return "is required";
  if (value.length > 255 && [...value].length > 255) return "must have at most 255 characters";
  if (/\p{Cc}/u.test(value)) return "must not have control characters";
  if (!value.isWellFormed()) return "must be well-formed Unicode";
  return undefined;
}

// Any text that PostgreSQL accepts as a parameter.
export function textSchema(): z.ZodString {
  return z.string().refine(
    (value) => !value.includes("\0") && value.isWellFormed(),
    "must be well-formed Unicode without a NUL",
  );
}

// Whether PostgreSQL accepts an ISO time: it has no year 0, no offset of 16 hours or more, and no
// fraction of any length.
export function isStorableTime(value: string): boolean {
  return !/^0000/.test(value) && !/[+-](1[6-9]|2\d):\d\d$/.test(value) && value.length <= 40;
}

// A list may contain a thousand bad values, and a problem may name all values that are allowed.
const maxNamed = 5;
const maxLength = 400;

export function problemsOf({ issues }: z.ZodError): string {
  const named: string[] = [];
  let length = 0;
  for (const { path, message } of issues.slice(0, maxNamed)) {
    const problem = path.length === 0 ? "request body is invalid" : `${path.join(".")} ${message}`;
    length += problem.length;
    if (named.length > 0 && length > maxLength) break;
    named.push(problem);
  }
  const more = issues.length - named.length;
  return [...named, ...(more > 0 ? [`and ${more} more`] : [])].join("; ");
}

// deno-lint-ignore explicit-module-boundary-types
export function errorSchema(codes: string[]) {
  return z.object({
    code: z.enum(codes),
    message: z.string().openapi({ description: "A sentence for a person to read" }),
  }).openapi("Error");
}

const sharedErrorSchema = errorSchema(Object.keys(statusOfCode));

// The messages become examples. A service with error codes of its own passes their type.
// deno-lint-ignore explicit-module-boundary-types
export function errorAnswer<Code extends string = ErrorCode>(
  description: string,
  messages: Partial<Record<NoInfer<Code>, string>> = {},
) {
  const examples = Object.fromEntries(
    Object.entries(messages).map(([code, message]) => [code, { value: { code, message } }]),
  );
  return { description, content: { "application/json": { schema: sharedErrorSchema, examples } } };
}
