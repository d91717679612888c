import type { z } from "@hono/zod-openapi";
import { errorAnswer } from "../http/fields.ts";
import type { ScopedRoute } from "../http/openapi.ts";

// A route that operators read. What changes something is an operation (operations.ts).

interface Look {
  path: string;
  summary: string;
  description: string;
  query?: z.ZodObject;
  answer: z.ZodType;
  answers: string; // what the answer is, in a sentence
  invalid?: string; // what is wrong with a request that is refused with 400
}

export function lookRoute(
  { path, summary, description, query, answer, answers, invalid }: Look,
): ScopedRoute {
  return {
    method: "get",
    path,
    scope: "debug:read",
    summary,
    description,
    ...(query ? { request: { query } } : {}),
    responses: {
      200: { description: answers, content: { "application/json": { schema: answer } } },
      ...(invalid ? { 400: errorAnswer(invalid) } : {}),
    },
  };
}
