import type { z } from "@hono/zod-openapi";
import { errorAnswer } from "../http/fields.ts";
import type { ScopedRoute } from "../http/openapi.ts";

// A route that operators read. What changes something is an operation (operations.ts).

interface Look {
  path: string;
  summary: string;
  description: string;
  query?: z.ZodObject;
  body?: z.ZodObject; // if what is asked for must not be in a url, where logs and traces have it
  answer: z.ZodType;
  answers: string; // what the answer is, in a sentence
  invalid?: string; // what is wrong with a request that is refused with 400
}

export function lookRoute(
  { path, summary, description, query, body, answer, answers, invalid }: Look,
): ScopedRoute {
  return {
    method: body ? "post" : "get",
    path,
    scope: "debug:read",
    summary,
    description,
    ...(query ? { request: { query } } : {}),
    ...(body
      ? { request: { body: { required: true, content: { "application/json": { schema: body } } } } }
      : {}),
    responses: {
      200: { description: answers, content: { "application/json": { schema: answer } } },
      ...(invalid ? { 400: errorAnswer(invalid) } : {}),
      ...(body
        ? {
          408: errorAnswer("The body took too long to arrive"),
          413: errorAnswer("The body is over 16 KiB"),
          415: errorAnswer("The body is not JSON"),
        }
        : {}),
    },
  };
}
