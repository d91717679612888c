import type { Log } from "../process/log.ts";
import { reasonOf } from "../process/reason.ts";
import { Trouble } from "../process/trouble.ts";
import { gauge, histogram, shortSeconds } from "../telemetry/metrics.ts";
import { activeTraceparent, inSpan, tracing } from "../telemetry/tracing.ts";
import { Breaker } from "./breaker.ts";
import { type Answer as RawAnswer, KeptConnections, NotConnected } from "./kept_connections.ts";

// Asks another service, and is certain to have an answer or a failure in time. A request without an
// effect is tried again. One with an effect goes over a connection of its own, so that no closed
// connection can be the reason why nothing is known of it, and is tried again only if the service
// has not seen it or would recognize it.

export interface ServiceOptions {
  name: string; // in errors, metrics and traces
  url: string | undefined; // without it, the service is unavailable
  token: string | undefined;
  deadlineMs: number; // for all tries of a request
  tryMs: number;
  tries: number;
  pauseMs?: number; // of the breaker
  log?: Log;
}

export interface Ask {
  method: string;
  path: string; // with its query
  headers?: Record<string, string>;
  body?: string;
  isRepeatable?: boolean; // although it has an effect, because a repeat has none
  waitMs?: number; // the service may take this much longer, because it was asked to wait
  deadline?: AbortSignal; // ends all tries earlier
}

export interface Answer {
  status: number; // 2xx or 4xx
  headers: Headers;
  text: string;
}

export type AskFailure = "TIMEOUT" | "BAD_GATEWAY" | "UNAVAILABLE";

export class AskFailed extends Error {
  override readonly name = "AskFailed";

  readonly failure: AskFailure;
  readonly retryAfterSeconds: number;

  constructor(failure: AskFailure, message: string, retryAfterSeconds = 1) {
    super(message);
    this.failure = failure;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

export interface Service {
  // Throws AskFailed.
  ask(request: Ask): Promise<Answer>;
  close(): void;
}

type Outcome =
  | { kind: "answered"; answer: Answer }
  | { kind: "failed"; failure: AskFailure; error: string };

// A list of thousands of entries still fits.
const largestAnswer = 4 * 1024 * 1024;

const durations = histogram(
  "kenri_ask_duration_seconds",
  "time of one try to ask another service; `outcome` is `answered` or the failure",
  shortSeconds,
  ["service", "outcome"],
);
const open = gauge<"service">(
  "kenri_breaker_open",
  "1 while another service is not asked, because it failed",
  ["service"],
);

export function openService(options: ServiceOptions): Service {
  const { name, url } = options;
  if (url === undefined) return { ask: () => notConfigured(name), close: () => {} };
  const connections = new KeptConnections(url, largestAnswer);
  const breaker = new Breaker(options.pauseMs);
  const trouble = troubleOf(options);
  open.labels(name).set(0);
  return {
    ask: async (request) => {
      const waitsMs = breaker.begin();
      if (waitsMs > 0) throw notAsked(name, waitsMs);
      const outcome = await tryRepeatedly(connections, options, request);
      if (outcome.kind === "answered") {
        breaker.succeeded();
        trouble.works("ask");
      } else {
        breaker.failed();
        if (breaker.isOpen) trouble.fails("ask", outcome.error);
      }
      open.labels(name).set(breaker.isOpen ? 1 : 0);
      if (outcome.kind === "answered") return outcome.answer;
      throw new AskFailed(outcome.failure, sentences[outcome.failure](name));
    },
    close: () => connections.close(),
  };
}

const sentences: Record<AskFailure, (name: string) => string> = {
  TIMEOUT: (name) => `the ${name} service did not answer in time`,
  BAD_GATEWAY: (name) => `the ${name} service failed`,
  UNAVAILABLE: (name) => `the ${name} service can't be reached, try again`,
};

function notAsked(name: string, waitsMs: number): AskFailed {
  return new AskFailed(
    "UNAVAILABLE",
    `the ${name} service is not asked for a while, because it failed`,
    Math.ceil(waitsMs / 1_000),
  );
}

function notConfigured(name: string): Promise<never> {
  return Promise.reject(new AskFailed("UNAVAILABLE", `no ${name} service is configured`, 60));
}

function troubleOf({ name, log }: ServiceOptions): Trouble {
  return new Trouble(
    (reason) => log?.warn("The {name} service fails: {reason}", { name, reason }),
    () => log?.info("The {name} service answers again", { name }),
  );
}

async function tryRepeatedly(
  connections: KeptConnections,
  options: ServiceOptions,
  request: Ask,
): Promise<Outcome> {
  const { waitMs = 0 } = request;
  const deadlineAt = performance.now() + options.deadlineMs + waitMs;
  for (let triesLeft = options.tries - 1;; triesLeft--) {
    const leftMs = deadlineAt - performance.now();
    const withinMs = Math.min(options.tryMs + waitMs, leftMs);
    const outcome = await tryTraced(connections, options, request, withinMs);
    const isLate = performance.now() >= deadlineAt;
    if (triesLeft <= 0 || isLate || !mayTryAgain(request, outcome)) return outcome;
  }
}

// No service has seen a request that ended as UNAVAILABLE.
function mayTryAgain({ method, isRepeatable = false }: Ask, outcome: Outcome): boolean {
  if (outcome.kind === "answered") return false;
  return method === "GET" || isRepeatable || outcome.failure === "UNAVAILABLE";
}

async function tryTraced(
  connections: KeptConnections,
  options: ServiceOptions,
  request: Ask,
  withinMs: number,
): Promise<Outcome> {
  const from = performance.now();
  const parent = activeTraceparent() ?? null;
  const attempt = (traceparent?: string) =>
    tryOnce(connections, options, request, withinMs, traceparent);
  const outcome = tracing
    ? await inSpan({ name: `ask ${options.name}`, kind: "client" }, parent, attempt)
    : await attempt();
  const kind = outcome.kind === "answered" ? outcome.kind : outcome.failure.toLowerCase();
  durations.labels(options.name, kind).observe((performance.now() - from) / 1_000);
  return outcome;
}

async function tryOnce(
  connections: KeptConnections,
  { token }: ServiceOptions,
  { method, path, headers, body, deadline }: Ask,
  withinMs: number,
  traceparent: string | undefined,
): Promise<Outcome> {
  const sent = {
    ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }),
    ...(body === undefined ? {} : { "Content-Type": "application/json" }),
    ...(traceparent === undefined ? {} : { traceparent }),
    ...headers,
  };
  const limits = { withinMs, end: deadline, isFresh: method !== "GET" };
  try {
    return judged(await connections.ask({ method, path, headers: sent, body }, limits));
  } catch (error) {
    return { kind: "failed", failure: failureOf(error), error: reasonOf(error) };
  }
}

function judged({ status, head, body }: RawAnswer): Outcome {
  const isAnswer = status >= 200 && status < 300 || status >= 400 && status < 500;
  if (isAnswer) {
    return { kind: "answered", answer: { status, headers: headersIn(head), text: body } };
  }
  return { kind: "failed", failure: "BAD_GATEWAY", error: `it answered ${status}` };
}

function failureOf(error: unknown): AskFailure {
  if (error instanceof NotConnected) return "UNAVAILABLE";
  return error instanceof Error && error.name === "TimeoutError" ? "TIMEOUT" : "BAD_GATEWAY";
}

function headersIn(head: string): Headers {
  const [, ...lines] = head.split("\r\n");
  return new Headers(lines.map((line): [string, string] => {
    const colon = line.indexOf(":");
    return [line.slice(0, colon), line.slice(colon + 1).trim()];
  }));
}
