import { Unavailable } from "./answers.ts";

// Repeats a request until it is answered. That is safe because it carries its idempotency key.

export interface Patience {
  /** Limit of one attempt, from the connection to the last byte of the answer. */
  attemptTimeoutMs: number;
  /** Limit of all attempts together with the pauses between them. */
  deadlineMs: number;
}

export interface Answer {
  status: number;
  headers: Headers;
  text: string;
}

export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

// The mean of the first pause; each further pause is twice as long, up to the longest.
const firstPauseMs = 100;
const longestPauseMs = 5_000;

export async function askUntilAnswered(
  fetch: Fetch,
  url: string,
  init: RequestInit,
  { attemptTimeoutMs, deadlineMs }: Patience,
  signal: AbortSignal | undefined,
): Promise<Answer> {
  const deadline = performance.now() + deadlineMs;
  for (let attempts = 1;; attempts++) {
    signal?.throwIfAborted();
    const leftMs = Math.max(1, deadline - performance.now()); // a timer may have fired late
    const outcome = await attempt(fetch, url, init, Math.min(attemptTimeoutMs, leftMs), signal);
    if ("status" in outcome && isFinal(outcome.status)) return outcome;
    const retryAfter = "headers" in outcome ? outcome.headers.get("Retry-After") : null;
    const pauseMs = pauseBefore(attempts, retryAfterMs(retryAfter));
    if (performance.now() + pauseMs >= deadline) throw new Unavailable(attempts, causeOf(outcome));
    await pause(pauseMs, signal);
  }
}

// A 429 only asks the caller to wait.
function isFinal(status: number): boolean {
  return status < 500 && status !== 429;
}

type Outcome = Answer | { error: unknown };

// Throws only if the caller aborts. Every other failure is a reason to try again.
async function attempt(
  fetch: Fetch,
  url: string,
  init: RequestInit,
  timeoutMs: number,
  signal: AbortSignal | undefined,
): Promise<Outcome> {
  const timeout = new AbortController();
  const late = () => timeout.abort(new Error(`no answer within ${Math.round(timeoutMs)} ms`));
  const timer = setTimeout(late, timeoutMs);
  const either = signal ? AbortSignal.any([signal, timeout.signal]) : timeout.signal;
  try {
    const response = await fetch(url, { ...init, signal: either });
    return { status: response.status, headers: response.headers, text: await response.text() };
  } catch (error) {
    signal?.throwIfAborted();
    return { error };
  } finally {
    clearTimeout(timer);
  }
}

function causeOf(outcome: Outcome): unknown {
  if ("error" in outcome) return outcome.error;
  return new Error(`status ${outcome.status}: ${outcome.text.slice(0, 200)}`);
}

// Never shorter than the service asks for. The random part spreads callers that failed at the same
// time.
export function pauseBefore(
  nextAttempt: number,
  askedMs: number,
  random: number = Math.random(),
): number {
  const grown = Math.min(longestPauseMs, firstPauseMs * 2 ** (nextAttempt - 1));
  return askedMs + grown * (0.5 + random);
}

// Kenri sends seconds; a proxy may send a date instead.
export function retryAfterMs(value: string | null, now: number = Date.now()): number {
  if (value === null || value.trim() === "") return 0;
  const seconds = Number(value);
  const ms = Number.isNaN(seconds) ? Date.parse(value) - now : seconds * 1_000;
  return Number.isFinite(ms) ? Math.max(0, ms) : 0;
}

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal?.addEventListener("abort", end);
  });
}
