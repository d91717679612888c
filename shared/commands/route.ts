import type { OpenAPIHono, z } from "@hono/zod-openapi";
import type { Context, HonoRequest } from "hono";
import { callerOf } from "../access/caller.ts";
import { readJson } from "../http/body.ts";
import { statusOf } from "../http/error_answers.ts";
import { ApiError } from "../http/errors.ts";
import { problemsOf } from "../http/fields.ts";
import { tooManyWaiting } from "../http/limits.ts";
import type { ScopedRoute } from "../http/openapi.ts";
import { addRoute } from "../http/route.ts";
import { type Trace, traceOf } from "../http/trace.ts";
import { sha256 } from "../process/sha256.ts";
import type { Batch } from "../queue/batch.ts";
import { activeTraceparent } from "../telemetry/tracing.ts";
import type { Answer, Outcome } from "./answer.ts";
import { described, keyPattern } from "./description.ts";

// The way of a command over HTTP: what its route says, the request, and the answer.

export interface CommandRoute<Fields, Input> {
  // Without what the routes of all commands have in common: see described.
  route: ScopedRoute;
  headers?: Record<string, z.ZodType>; // besides those of all commands
  key?: Key; // without it, the route takes no Idempotency-Key
  body?: Body<Fields>;
  refusals?: { description: string; messages: Record<string, string> }; // by their codes, with 409
  invalid?: Record<string, string>; // what else is answered with 400, by the codes
  // May throw an ApiError. `fields` is undefined for a route without a body.
  toInput(
    fields: Fields,
    sender: Sender,
    req: HonoRequest,
    context: Context,
  ): Input | Promise<Input>;
  count?(result: Result): void;
}

export interface Key {
  advice: string;
  example: string;
  isOptional?: boolean; // a request without a key is carried out each time
  keptFor?: string; // how long a repeat gets the first answer; 24 hours unless it says otherwise
}

export interface Body<Fields> {
  schema: z.ZodObject & z.ZodType<Fields>;
  example: Fields;
}

export interface Sender extends Trace {
  caller: string; // "" if callers have no names
  idempotencyKey: string; // "" if there is none
}

export type Result = Outcome | "invalid" | "unavailable" | "error";

export function addCommand<Fields, Input>(
  app: OpenAPIHono,
  batch: Batch<Input, Answer>,
  command: CommandRoute<Fields, Input>,
): void {
  addRoute(app, described(command), (context) => {
    // Before the request is read, because under too much load a refusal must be cheap.
    if (batch.full) {
      command.count?.("unavailable");
      throw tooManyWaiting();
    }
    return carryOut(context, batch, command);
  });
}

async function carryOut<Fields, Input>(
  context: Context,
  batch: Batch<Input, Answer>,
  command: CommandRoute<Fields, Input>,
): Promise<Response> {
  const { headers } = context.req.raw;
  const trace = traceOf(headers, activeTraceparent());
  try {
    const answer = await batch.add(await readInput(context, command, trace));
    command.count?.(answer.outcome);
    return respond(answer, trace);
  } catch (error) {
    const status = statusOf(error);
    command.count?.(status < 500 ? "invalid" : status === 503 ? "unavailable" : "error");
    context.set("about", {
      trace_id: trace.traceId,
      idempotency_key_sha256: sha256(headers.get("Idempotency-Key") ?? ""),
    });
    throw error;
  }
}

async function readInput<Fields, Input>(
  context: Context,
  { key, body, toInput }: CommandRoute<Fields, Input>,
  trace: Trace,
): Promise<Input> {
  const { req } = context;
  const idempotencyKey = key ? readKey(req.raw.headers.get("Idempotency-Key"), key) : "";
  const fields = body ? readFields(body, await readJson(req.raw)) : undefined as Fields;
  const caller = callerOf(context).name;
  return await toInput(fields, { caller, idempotencyKey, ...trace }, req, context);
}

function readKey(given: string | null, { isOptional = false }: Key): string {
  if (given === null && isOptional) return "";
  if (given === null || given.trim() === "") {
    throw new ApiError("BAD_REQUEST", "Idempotency-Key is required");
  }
  if (!keyPattern.test(given)) {
    throw new ApiError("BAD_REQUEST", "Idempotency-Key must be 1 to 255 visible ASCII characters");
  }
  return given;
}

function readFields<Fields>({ schema }: Body<Fields>, json: unknown): Fields {
  const read = schema.safeParse(json);
  if (!read.success) throw new ApiError("BAD_REQUEST", problemsOf(read.error));
  return read.data;
}

function respond({ status, body, outcome, headers }: Answer, { traceId }: Trace): Response {
  return new Response(body || null, {
    status,
    headers: {
      ...(body ? { "Content-Type": "application/json" } : {}),
      "X-Trace-Id": traceId,
      ...(outcome === "replayed" ? { "Idempotency-Replayed": "true" } : {}),
      ...headers,
    },
  });
}
