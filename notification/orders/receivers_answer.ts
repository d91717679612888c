import type { SendAnswer, SendFailure, SendRequest } from "@kenri/proto/send.ts";
import { backoffMs } from "@kenri/shared/queue/backoff.ts";
import type { Outcome, Retries } from "@kenri/shared/queue/job.ts";
import type { OrderRow, Sent } from "./orders.ts";
import { reasonOfStatus, reasons } from "./reasons.ts";

// What the answer of a receiver, or the lack of one, means for its order.

// The receiver may ask for a pause, but not for ever.
const longestPauseMs = 3_600_000;
const defaultPauseMs = 60_000;
const longestThrottledMs = 24 * 3_600_000;
const keptOfError = 512;

export function outcomeOf(
  row: OrderRow,
  { headers: requestHeaders }: SendRequest,
  { answer, ms }: { answer: SendAnswer | SendFailure; ms: number },
  retries: Retries,
): Outcome<Sent> {
  const reason = "status" in answer ? reasonOfStatus(answer.status) : answer.reason_code;
  const result: Sent = {
    tried: true,
    ms,
    requestHeaders,
    ...(reason ? { reason } : {}),
    ...("status" in answer ? { status: answer.status, responseHeaders: answer.headers } : {}),
    ...("status" in answer && answer.body !== "" ? { body: storable(answer.body) } : {}),
  };
  if (!reason) return { kind: "done", result };
  const error = "status" in answer
    ? `the receiver answered ${answer.status}`
    : storable(answer.message).slice(0, keptOfError);
  const { then } = reasons[reason];
  if (then === "end") return { kind: "failed", error, result };
  if (then === "later") return throttled(row, answer as SendAnswer, { error, result });
  const { content: { endpoint }, attempts } = row;
  if (endpoint?.is_probe) return { kind: "later", delayMs: 0, error, result };
  const delayMs = Math.min(backoffMs(retries.backoff, attempts + 1), Math.max(0, expiresInMs(row)));
  return { kind: "retry", error, delayMs, result };
}

function throttled(
  { lane, content: { throttled_ms } }: OrderRow,
  { headers }: SendAnswer,
  failure: { error: string; result: Sent },
): Outcome<Sent> {
  if ((throttled_ms ?? 0) >= longestThrottledMs) {
    return { kind: "failed", attempted: false, ...failure };
  }
  const delayMs = retryAfterMs(headers["retry-after"], Date.now());
  return { kind: "later", delayMs, ...(lane === undefined ? {} : { lane }), ...failure };
}

// Seconds, or a date.
export function retryAfterMs(written: string | undefined, now: number): number {
  if (written === undefined) return defaultPauseMs;
  const ms = /^\d{1,9}$/.test(written) ? Number(written) * 1_000 : Date.parse(written) - now;
  return Number.isNaN(ms) ? defaultPauseMs : Math.min(Math.max(ms, 1_000), longestPauseMs);
}

// PostgreSQL stores neither this character nor halves of others.
function storable(text: string): string {
  return text.replaceAll("\u0000", "\ufffd").toWellFormed();
}

export function expiresInMs({ claimedAt, content: { expires_in_ms } }: OrderRow): number {
  return expires_in_ms === null ? Infinity : expires_in_ms - (performance.now() - claimedAt);
}
