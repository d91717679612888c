import {
  type Answer,
  type Ask,
  AskFailed,
  openService,
  type Service,
} from "@kenri/shared/http/ask_service.ts";
import { ApiError } from "@kenri/shared/http/errors.ts";
import type { Log } from "@kenri/shared/process/log.ts";
import type { ContentfulStatusCode } from "hono/utils/http-status";
import { z } from "zod";
import type { Config } from "./config.ts";
import { apiError, type Dependency, type DependencyCode, type Failure } from "./errors.ts";

// The services behind the gateway. Whatever one of them does, the caller gets its answer, or an
// error whose code names it.

const times = {
  // While events of accounts may be missing nobody is let in without its answer, so it is asked again
  // soon.
  account: { deadlineMs: 1_000, tryMs: 300, tries: 2, pauseMs: 1_000 },
  entitlement: { deadlineMs: 1_000, tryMs: 300, tries: 2 },
  notification: { deadlineMs: 1_000, tryMs: 300, tries: 2 },
  // A ticket lives for a minute by default, so it is asked again soon as well.
  matchmaking: { deadlineMs: 10_000, tryMs: 3_000, tries: 2, pauseMs: 5_000 },
};

export type DependencyName = keyof typeof times;

export interface DependencyClient {
  // The answer, which has a status of 2xx. Throws an ApiError.
  ask(request: Ask): Promise<Answer>;
  // The same, and what its JSON says.
  json<Value>(request: Ask, schema: z.ZodType<Value>): Promise<Value>;
  read<Value>(answer: Answer, schema: z.ZodType<Value>): Value;
}

export type Dependencies = Record<DependencyName, DependencyClient>;

export function openDependencies(config: Pick<Config, DependencyName>, log?: Log): Dependencies {
  const open = (name: DependencyName) => {
    const logged = log === undefined ? {} : { log };
    const service = openService({ name, ...config[name], ...times[name], ...logged });
    return dependencyClient(name.toUpperCase() as Uppercase<DependencyName>, service);
  };
  return {
    account: open("account"),
    entitlement: open("entitlement"),
    notification: open("notification"),
    matchmaking: open("matchmaking"),
  };
}

function dependencyClient(dependency: Dependency, service: Service): DependencyClient {
  const ask = async (request: Ask) => {
    const answer = await service.ask(request).catch((error) => {
      throw error instanceof AskFailed ? failed(dependency, error) : error;
    });
    if (answer.status >= 400) throw refusalOf(dependency, answer);
    if (answer.text !== "" && !isJson(answer)) throw unreadable(dependency);
    return answer;
  };
  const read = <Value>({ text }: Answer, schema: z.ZodType<Value>) => {
    const found = schema.safeParse(parsed(text));
    if (!found.success) throw unreadable(dependency);
    return found.data;
  };
  return {
    ask,
    read,
    json: async (request, schema) => read(await ask(request), schema),
  };
}

const codeOf = (dependency: Dependency, failure: Failure): DependencyCode =>
  `${dependency}_${failure}`;

function failed(dependency: Dependency, error: AskFailed): ApiError {
  const { failure, message, retryAfterSeconds, answer } = error;
  const says = answer?.status === 503 ? readError(answer) : undefined;
  if (answer && says?.code === codeOf(dependency, "UNAVAILABLE")) {
    const wait = answer.headers.get("Retry-After") ?? "1";
    return apiError(codeOf(dependency, "UNAVAILABLE"), says.message, { "Retry-After": wait });
  }
  const headers: Record<string, string> = failure === "UNAVAILABLE"
    ? { "Retry-After": `${retryAfterSeconds}` }
    : {};
  return apiError(codeOf(dependency, failure), message, headers);
}

export function unreadable(dependency: Dependency): ApiError {
  const name = dependency.toLowerCase();
  return apiError(
    codeOf(dependency, "INVALID_RESPONSE"),
    `the ${name} service's answer is invalid`,
  );
}

const errorSchema = z.object({ code: z.string().regex(/^[A-Z_]{1,64}$/), message: z.string() });

function readError(answer: Answer): z.output<typeof errorSchema> | undefined {
  return errorSchema.safeParse(isJson(answer) ? parsed(answer.text) : undefined).data;
}

// A refusal passes with the code of the service behind, unless only the name of that service makes
// clear what was not found or forbidden.
function refusalOf(dependency: Dependency, answer: Answer): ApiError {
  const { status, headers } = answer;
  if (status === 401) return gatewayRefused(dependency, "UNAUTHORIZED");
  const read = readError(answer);
  if (!read) return unreadable(dependency);
  const { code, message } = read;
  const isOwnCode = code.startsWith(`${dependency}_`);
  if (status === 403 && headers.has("WWW-Authenticate")) {
    return gatewayRefused(dependency, "FORBIDDEN");
  }
  if (status === 403 && !isOwnCode) return apiError(codeOf(dependency, "FORBIDDEN"), message);
  if (status === 404 && !isOwnCode) return apiError(codeOf(dependency, "NOT_FOUND"), message);
  const wait = headers.get("Retry-After");
  const own = { code, status: status as ContentfulStatusCode };
  return new ApiError(own, message, wait === null ? {} : { "Retry-After": wait });
}

// This concerns no caller, so it does not say more.
function gatewayRefused(dependency: Dependency, failure: "UNAUTHORIZED" | "FORBIDDEN"): ApiError {
  const name = dependency.toLowerCase();
  return apiError(codeOf(dependency, failure), `the ${name} service refused the gateway's token`);
}

function isJson({ headers }: Answer): boolean {
  return /^application\/json *(;|$)/i.test(headers.get("Content-Type") ?? "");
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
