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
  left?: AbortSignal; // nobody waits for the answer any more, which is no failure of the service
}

export interface Answer {
  status: number; // 2xx or 4xx, unless it is part of a failure
  headers: Headers;
  text: string;
}

export type AskFailure = "TIMEOUT" | "BAD_GATEWAY" | "UNAVAILABLE";

export class AskFailed extends Error {
  override readonly name = "AskFailed";

  readonly failure: AskFailure;
  readonly retryAfterSeconds: number;
  readonly answer: Answer | undefined; // with a status of 3xx or 5xx

  constructor(
    failure: AskFailure,
    message: string,
    { retryAfterSeconds = 1, answer }: { retryAfterSeconds?: number; answer?: Answer | undefined } =
      {},
  ) {
    super(message);
    this.failure = failure;
    this.retryAfterSeconds = retryAfterSeconds;
    this.answer = answer;
  }
}

export interface Service {
  // Throws AskFailed, or the reason of `left`.
  ask(request: Ask): Promise<Answer>;
  close(): void;
}

type Outcome =
  | { kind: "answered"; answer: Answer }
  | { kind: "failed"; failure: AskFailure; error: string; answer?: Answer }
  | { kind: "left" };

// A list of thousands of entries still fits.
const largestAnswer = 4 * 1024 * 1024;

const durations = histogram(
  "kenri_ask_duration_seconds",
  "time of one try to ask another service; `outcome` is `answered`, the failure, or `left` if nobody waits for the answer any more",
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
      if (outcome.kind === "left") throw request.left?.reason;
      if (outcome.kind === "answered") {
        breaker.succeeded();
        trouble.works("ask");
      } else {
        breaker.failed();
        if (breaker.isOpen) trouble.fails("ask", outcome.error);
      }
      open.labels(name).set(breaker.isOpen ? 1 : 0);
      if (outcome.kind === "answered") return outcome.answer;
      const { failure, answer } = outcome;
      throw new AskFailed(failure, sentences[failure](name), { answer });
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
    { retryAfterSeconds: Math.ceil(waitsMs / 1_000) },
  );
}

function notConfigured(name: string): Promise<never> {
  const message = `no ${name} service is configured`;
  return Promise.reject(new AskFailed("UNAVAILABLE", message, { retryAfterSeconds: 60 }));
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
  if (outcome.kind !== "failed") return false;
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
  const kind = outcome.kind === "failed" ? outcome.failure.toLowerCase() : outcome.kind;
  durations.labels(options.name, kind).observe((performance.now() - from) / 1_000);
  return outcome;
}

async function tryOnce(
  connections: KeptConnections,
  { token }: ServiceOptions,
  { method, path, headers, body, deadline, left }: Ask,
  withinMs: number,
  traceparent: string | undefined,
): Promise<Outcome> {
  const sent = {
    ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }),
    ...(body === undefined ? {} : { "Content-Type": "application/json" }),
    ...(traceparent === undefined ? {} : { traceparent }),
    ...headers,
  };
  const end = deadline && left ? AbortSignal.any([deadline, left]) : deadline ?? left;
  const limits = { withinMs, end, isFresh: method !== "GET" };
  try {
    return judged(await connections.ask({ method, path, headers: sent, body }, limits));
  } catch (error) {
    if (left?.aborted) return { kind: "left" };
    return { kind: "failed", failure: failureOf(error), error: reasonOf(error) };
  }
}

function judged({ status, head, body }: RawAnswer): Outcome {
  const answer = { status, headers: headersIn(head), text: body };
  const isUsable = status >= 200 && status < 300 || status >= 400 && status < 500;
  if (isUsable) return { kind: "answered", answer };
  return { kind: "failed", failure: "BAD_GATEWAY", error: `it answered ${status}`, answer };
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
