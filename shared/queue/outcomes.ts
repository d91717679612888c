import { reasonOf } from "../process/reason.ts";
import type { Series } from "../telemetry/histogram.ts";
import { inSpan, tracing } from "../telemetry/tracing.ts";
import { backoffMs } from "./backoff.ts";
import type { Claimed, Job, Outcome, Retries, Settlement } from "./job.ts";
import { secondsSince } from "./worker_report.ts";

// What the table is asked to write down for the outcome of the work on a row.
export function settlementOf<Row extends Claimed, Result>(
  row: Row,
  outcome: Outcome<Result>,
  { maxAttempts, backoff }: Retries,
): Settlement<Row, Result> {
  switch (outcome.kind) {
    case "done":
      return { row, kind: "done", result: outcome.result };
    case "retry": {
      const { delayMs, ...failure } = outcome;
      const attempt = row.attempts + 1;
      if (attempt >= maxAttempts) return { row, ...failure, kind: "failed", attempted: true };
      return { row, ...failure, delayMs: delayMs ?? backoffMs(backoff, attempt) };
    }
    case "failed":
      return { row, attempted: true, ...outcome };
    case "later": {
      return { row, ...outcome, kind: "released" };
    }
    case "unavailable":
      return { row, kind: "released" };
  }
}

// Expected outcomes are returned. An exception is a bug, most likely one of only this row.
export async function outcomeOf<Row extends Claimed, Result>(
  row: Row,
  { work, stepOf, traceparentOf }: Job<Row, Result>,
  workSeconds: Series,
): Promise<Outcome<Result>> {
  const from = performance.now();
  try {
    if (!tracing) return await work(row);
    return await inSpan(stepOf(row), traceparentOf(row), (parent) => work(row, parent));
  } catch (error) {
    return { kind: "retry", error: reasonOf(error) };
  } finally {
    workSeconds.observe(secondsSince(from));
  }
}
