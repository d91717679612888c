// A client that repeats each request under its key until it is answered, spreads its attempts over
// the replicas, and counts what happened. The published client in client/ pauses longer and longer;
// this one keeps up the pressure on a service in trouble, and remembers every attempt.
import { setTimeout as pause } from "node:timers/promises";
import type { HttpRequest } from "./http_request.ts";

export interface Answer {
  status: number;
  body: string;
  replayed: boolean;
}

/** A 503 counts as such if it has a Retry-After. */
export type Outcome =
  | "answered"
  | "503"
  | "other 5xx"
  | "timed out"
  | "not connected"
  | "connection lost";

/** One attempt as its client saw it. */
export interface Attempt {
  outcome: Outcome;
  /** Both times are in milliseconds since 1970, of a clock that never goes back. */
  sentAt: number;
  answeredAt: number;
  /** Absent where the client can't know what happened to its request. */
  answer: Answer | undefined;
  retryAfterMs: number;
  problem: string;
}

/** Sends the request once. */
export async function attempt(
  url: string,
  { path, init }: HttpRequest,
  timeoutMs?: number,
): Promise<Attempt> {
  const sentAt = now();
  const ended = (parts: Pick<Attempt, "outcome"> & Partial<Attempt>): Attempt => ({
    ...{ sentAt, answeredAt: now(), answer: undefined, retryAfterMs: 0, problem: "" },
    ...parts,
  });
  try {
    const timeout = timeoutMs === undefined ? {} : { signal: AbortSignal.timeout(timeoutMs) };
    const response = await fetch(`${url}${path}`, { ...init, ...timeout });
    const { status, headers } = response;
    const body = await response.text();
    const retryAfterMs = Number(headers.get("Retry-After") ?? 0) * 1_000;
    const answer = { status, body, replayed: headers.get("Idempotency-Replayed") === "true" };
    if (status < 500) return ended({ outcome: "answered", answer, retryAfterMs });
    const outcome = status === 503 && retryAfterMs > 0 ? "503" : "other 5xx";
    return ended({ outcome, answer, retryAfterMs, problem: `${status} ${body}` });
  } catch (error) {
    return ended({ outcome: outcomeOf(error), problem: String(error) });
  }
}

function now(): number {
  return performance.timeOrigin + performance.now();
}

function outcomeOf(error: unknown): Outcome {
  const { name, message, cause } = error as Error;
  if (name === "TimeoutError") return "timed out";
  return /client error \(Connect\)/.test(`${message} ${cause}`)
    ? "not connected"
    : "connection lost";
}

export interface ClientOptions {
  attemptTimeoutMs?: number;
  /** The mean of the pause before the next attempt, in addition to what Retry-After asks for. */
  pauseMs?: number;
  /** Ends all requests that have no answer yet. */
  abandoned?: AbortSignal;
}

const giveUpMs = 60_000;

export class RepeatingClient {
  /** The number of attempts by outcome. */
  readonly outcomes: Partial<Record<Outcome, number>> = {};
  /** Attempts that failed although a replica took the connection and did not ask to come back. */
  readonly failures: string[] = [];
  /** The longest time from a first attempt to its answer. */
  slowestMs = 0;
  readonly #urls: string[];
  readonly #options: ClientOptions;
  #next = 0;

  constructor(urls: string[], options: ClientOptions = {}) {
    this.#urls = urls;
    this.#options = options;
  }

  /** Returns all attempts. The last one was answered, unless the client had to give up. */
  async ask(request: HttpRequest): Promise<Attempt[]> {
    const { attemptTimeoutMs, pauseMs = 50, abandoned } = this.#options;
    const attempts: Attempt[] = [];
    const from = performance.now();
    while (!abandoned?.aborted) {
      const url = this.#urls[this.#next++ % this.#urls.length] ?? "";
      const one = await attempt(url, request, attemptTimeoutMs);
      attempts.push(one);
      this.#count(one);
      const sinceMs = performance.now() - from;
      if (one.outcome === "answered") {
        this.slowestMs = Math.max(this.slowestMs, sinceMs);
        break;
      }
      if (!abandoned && sinceMs > giveUpMs) {
        throw new Error(`No answer to ${request.path} within ${giveUpMs} ms: ${one.problem}`);
      }
      await pause(one.retryAfterMs + pauseMs * (0.5 + Math.random()));
    }
    return attempts;
  }

  #count({ outcome, problem }: Attempt): void {
    this.outcomes[outcome] = (this.outcomes[outcome] ?? 0) + 1;
    if (!["answered", "503", "not connected"].includes(outcome)) this.failures.push(problem);
  }
}
