import type { OpenAPIHono } from "@hono/zod-openapi";
import { z } from "@hono/zod-openapi";
import type { Ask } from "@kenri/shared/http/ask_service.ts";
import { readJsonText } from "@kenri/shared/http/body.ts";
import { ApiError } from "@kenri/shared/http/errors.ts";
import { addRoute, pathPart } from "@kenri/shared/http/route.ts";
import type { ScopedRoute } from "@kenri/shared/http/openapi.ts";
import { uuidPattern } from "@kenri/shared/process/uuid.ts";
import type { Context, Handler } from "hono";
import {
  accountFieldsSchema,
  accountSchema,
  entitlementsSchema,
  failuresOf,
  joinSchema,
  notificationsSchema,
  pointsSchema,
  refusalsOf,
  ticketSchema,
} from "./answers.ts";
import type { Dependencies, DependencyName } from "./dependencies.ts";
import { apiError, type Dependency, type ErrorCode } from "./errors.ts";
import { visitorOf } from "./session/admit.ts";
import type { Wait } from "./waiting.ts";

// Requests that go to the service behind under the same path, on behalf of the user of the session.
// Only what is named here passes: no other header, parameter or cookie of the caller.

interface Passed {
  to: DependencyName;
  method: "get" | "patch" | "post" | "delete";
  path: string;
  summary: string;
  isOwn?: boolean; // the service does not ask on whose behalf, so the gateway decides
  parameters?: string[]; // of the query
  body?: z.ZodType;
  isRepeatable?: boolean;
  answer: z.ZodType;
  refusals: ErrorCode[];
}

const accounts = {
  to: "account",
  path: "/v1/users/{user_id}",
  answer: accountSchema,
} as const;

const tickets = {
  to: "matchmaking",
  path: "/v1/matchmaking/tickets/{ticket_id}",
  answer: ticketSchema,
} as const;

const passed: Passed[] = [
  {
    ...accounts,
    method: "get",
    summary: "The account of a user",
    refusals: ["ACCOUNT_FORBIDDEN", "ACCOUNT_NOT_FOUND"],
  },
  {
    ...accounts,
    method: "patch",
    summary: "Change the name or the locale of a user",
    body: accountFieldsSchema,
    refusals: ["ACCOUNT_FORBIDDEN", "ACCOUNT_NOT_FOUND", "PRECONDITION_FAILED"],
  },
  {
    to: "entitlement",
    method: "get",
    path: "/v1/users/{user_id}/entitlements",
    summary: "All entitlements of the user",
    isOwn: true,
    answer: entitlementsSchema,
    refusals: ["ENTITLEMENT_FORBIDDEN"],
  },
  {
    to: "entitlement",
    method: "get",
    path: "/v1/users/{user_id}/points",
    summary: "All balances of the user",
    isOwn: true,
    parameters: ["unit"],
    answer: pointsSchema,
    refusals: ["ENTITLEMENT_FORBIDDEN"],
  },
  {
    to: "notification",
    method: "get",
    path: "/v1/users/{user_id}/notifications",
    summary: "The notifications of the user, the newest first",
    isOwn: true,
    parameters: ["limit", "cursor"],
    answer: notificationsSchema,
    refusals: ["NOTIFICATION_FORBIDDEN"],
  },
  {
    to: "matchmaking",
    method: "post",
    path: "/v1/matchmaking/queues/{mode}/tickets",
    summary: "Wait for a match",
    body: joinSchema,
    isRepeatable: true, // by its idempotency_key; without one the service refuses it
    answer: ticketSchema,
    refusals: [
      ...["MATCHMAKING_BAD_REQUEST", "MATCHMAKING_ALREADY_QUEUED"] as const,
      "IDEMPOTENCY_KEY_CONFLICT",
    ],
  },
  {
    ...tickets,
    method: "get",
    summary: "How a ticket stands",
    parameters: ["wait"],
    refusals: ["MATCHMAKING_TICKET_FORBIDDEN", "MATCHMAKING_TICKET_NOT_FOUND"],
  },
  {
    ...tickets,
    method: "delete",
    summary: "Wait for a match no more",
    isRepeatable: true, // the second time changes nothing
    refusals: ["MATCHMAKING_TICKET_FORBIDDEN", "MATCHMAKING_TICKET_NOT_FOUND"],
  },
];

export interface PassOnParts {
  dependencies: Dependencies;
  wait: Wait;
}

export function addPassedRoutes(app: OpenAPIHono, parts: PassOnParts): void {
  for (const one of passed) addRoute(app, described(one), passOn(one, parts));
}

function passOn(
  { to, method, path, isOwn = false, parameters = [], body, isRepeatable = false }: Passed,
  { dependencies, wait }: PassOnParts,
): Handler {
  const dependency = dependencies[to];
  return async (context) => {
    const { userId } = visitorOf(context).session;
    const { req } = context;
    if (isOwn) requireOwn(context, userId, `${nameOf(to)}_FORBIDDEN`);
    const request: Ask = {
      method: method.toUpperCase(),
      path: pathBehind(context, path) + queryOf(context, parameters),
      headers: { "X-User-Id": userId, ...preconditionOf(req.raw) },
      isRepeatable,
      waitMs: parameters.includes("wait") ? waitMsOf(req.query("wait")) : 0,
    };
    if (body) request.body = await readJsonText(req.raw);
    const answer =
      await (request.waitMs
        ? wait(context, (left) => dependency.ask({ ...request, left }))
        : dependency.ask(request));
    return new Response(answer.text || null, {
      status: answer.status,
      headers: passedHeaders(answer.headers),
    });
  };
}

const nameOf = (to: DependencyName) => to.toUpperCase() as Dependency;

// The name of a user in a path is that of the session, in any case of letters.
export function requireOwn(context: Context, userId: string, code: ErrorCode): void {
  if (pathPart(context.req, "user_id").toLowerCase() === userId) return;
  throw apiError(code, "this is not yours");
}

function pathBehind({ req }: Context, path: string): string {
  return path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const part = pathPart(req, name);
    if (name !== "user_id") return segmentOf(name, part);
    if (!uuidPattern.test(part)) throw apiError("ACCOUNT_NOT_FOUND", "user not found");
    return part.toLowerCase();
  });
}

// One part of a path, which can't lead to another path.
export function segmentOf(name: string, part: string): string {
  if (/^\.{0,2}$/.test(part)) throw new ApiError("BAD_REQUEST", `${name} is invalid`);
  return encodeURIComponent(part);
}

function queryOf({ req }: Context, parameters: string[]): string {
  const given = parameters.flatMap((name) => {
    const value = req.query(name);
    return value === undefined ? [] : [[name, value]];
  });
  return given.length === 0 ? "" : `?${new URLSearchParams(given)}`;
}

function preconditionOf({ headers }: Request): Record<string, string> {
  const tag = headers.get("If-Match");
  return tag === null ? {} : { "If-Match": tag };
}

const maxWaitSeconds = 60;

function waitMsOf(wait: string | undefined): number {
  if (wait === undefined) return 0;
  const seconds = Number(/^(\d{1,2})s$/.exec(wait)?.[1]);
  if (seconds <= maxWaitSeconds) return seconds * 1_000;
  throw new ApiError("BAD_REQUEST", `wait must be from 0s to ${maxWaitSeconds}s`);
}

function passedHeaders(headers: Headers): [string, string][] {
  return ["Content-Type", "ETag", "X-Trace-Id"].flatMap((name): [string, string][] => {
    const value = headers.get(name);
    return value === null ? [] : [[name, value]];
  });
}

function described({ to, method, path, summary, parameters, body, answer, refusals }: Passed) {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name);
  const text = (of: string[]) => of.map((name) => [name, z.string()]);
  const route: ScopedRoute = {
    method,
    path,
    scope: "session",
    tags: ["People"],
    summary,
    request: {
      params: z.object(Object.fromEntries(text(names))),
      query: z.object(Object.fromEntries(
        text(parameters ?? []).map(([name, schema]) => [
          name,
          (schema as z.ZodString).optional(),
        ]),
      )),
      ...(body
        ? { body: { required: true, content: { "application/json": { schema: body } } } }
        : {}),
    },
    responses: {
      200: {
        description: `As the ${to} service answers`,
        content: { "application/json": { schema: answer } },
      },
      ...refusalsOf("BAD_REQUEST", ...refusals),
      ...failuresOf(nameOf(to)),
    },
  };
  return route;
}
