import type { OpenAPIHono } from "@hono/zod-openapi";
import type { Context } from "hono";
import type { ContentfulStatusCode } from "hono/utils/http-status";
import type { InternalCall } from "../access/admit.ts";
import type { Caller } from "../access/caller.ts";
import { ApiError } from "../http/errors.ts";

// The console calls the API of its own service, within the process. So its pages show what the API
// returns and change only what the API can change.

export type Query = Record<string, string | undefined>;

export interface Api {
  get<Answer>(path: string, query?: Query): Promise<Answer>;
  post<Answer>(path: string, body: Record<string, unknown>): Promise<Answer>;
}

// Each page answers a request with the API at hand.
export type ShowPage = (context: Context, api: Api) => Promise<Response> | Response;

// Calls are made in the name of the caller, with that caller's scopes.
export function apiOf(app: OpenAPIHono, caller: Caller): Api {
  const internal: InternalCall = { caller };
  const ask = async <Answer>(path: string, init?: RequestInit): Promise<Answer> => {
    const answer = await app.request(path, init, internal);
    if (answer.ok) return await answer.json();
    const { code, message }: { code: string; message: string } = await answer.json();
    throw new ApiError({ code, status: answer.status as ContentfulStatusCode }, message);
  };
  return {
    get: (path, query = {}) => ask(`${path}${queryOf(query)}`),
    post: (path, body) =>
      ask(path, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify(body),
      }),
  };
}

// With the question mark, or empty if nothing is given.
export function queryOf(query: Query): string {
  const given = Object.entries(query).filter((entry): entry is [string, string] =>
    entry[1] !== undefined
  );
  return given.length === 0 ? "" : `?${new URLSearchParams(given)}`;
}
