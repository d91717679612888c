import { firstId } from "@kenri/shared/http/cursor.ts";
import type { Log } from "@kenri/shared/process/log.ts";
import { provenUntil as provenUntilGauge, unreceivedEvents } from "../metrics.ts";
import { type Database, query } from "@kenri/shared/postgres/postgres.ts";
import { pause } from "@kenri/shared/process/signals.ts";
import { Trouble } from "@kenri/shared/process/trouble.ts";
import { checkAudit, type Checked, checkedAtOnce, checkOpen, timeBefore } from "./check.ts";
import type { AskReceiver } from "./ask.ts";
import { beginRun, finishRun, keepLease, type Run, saveProgress } from "./run_lease.ts";
import { settleChecked, type SettleParts } from "./settle.ts";

// Proves once per interval that all events were received, starting where the last run ended. Events
// that are missing are republished, and stay listed until they are received.

export interface ReconcileParts extends SettleParts {
  ask: AskReceiver;
  log: Log;
}

export interface ReconcileOptions {
  intervalMs: number;
  graceSeconds: number; // events that were published more recently may still be on their way
}

const checkEveryMs = 60_000;

export async function runReconciliation(
  parts: ReconcileParts,
  options: ReconcileOptions,
  stop: AbortSignal,
): Promise<void> {
  const { log } = parts;
  const trouble = new Trouble(
    (error) => log.warn("Reconciliation postponed: {error}", { error }),
    () => log.info("Reconciliation resumed"),
  );
  while (!stop.aborted) {
    // Wait before the first run as well, because the notification service may also be starting.
    await pause(Math.min(options.intervalMs, checkEveryMs), stop);
    if (stop.aborted) return;
    try {
      await reconcileIfDue(parts, options, stop);
      await showFigures(parts.database);
      trouble.works("run");
    } catch (error) {
      trouble.fails("run", error);
    }
  }
}

async function reconcileIfDue(
  parts: ReconcileParts,
  { intervalMs, graceSeconds }: ReconcileOptions,
  stop: AbortSignal,
): Promise<void> {
  const { database } = parts;
  const run = await beginRun(database, intervalMs);
  if (!run) return;
  await recheckOpen(parts, run, graceSeconds, stop);
  await provePages(parts, run, graceSeconds, stop);
  if (!stop.aborted) await finishRun(database, run);
}

async function recheckOpen(
  parts: ReconcileParts,
  run: Run,
  graceSeconds: number,
  stop: AbortSignal,
): Promise<void> {
  let after = firstId;
  while (!stop.aborted) {
    const page = await checkOpen(parts.database, parts.ask, { after, graceSeconds });
    await settle(parts, run, page);
    const last = page.at(-1);
    if (!last || page.length < checkedAtOnce) return;
    after = last.event.event_id;
  }
}

// Goes through the audit up to the first event that is still on its way. The next run continues
// there.
async function provePages(
  parts: ReconcileParts,
  run: Run,
  graceSeconds: number,
  stop: AbortSignal,
): Promise<void> {
  const { database, ask } = parts;
  const until = await timeBefore(database, graceSeconds);
  let after = { occurred_at: run.proven_until, event_id: firstId };
  while (!stop.aborted) {
    const page = await checkAudit(database, ask, { after, until, graceSeconds });
    const end = page.findIndex(({ state }) => state === "IN_FLIGHT");
    await settle(parts, run, end < 0 ? page : page.slice(0, end));
    const inFlight = page[end]?.event.occurred_at;
    const last = page.length < checkedAtOnce ? undefined : page.at(-1)?.event;
    await saveProgress(database, run, inFlight ?? last?.occurred_at ?? until);
    if (inFlight !== undefined || last === undefined) return;
    after = last;
  }
}

async function settle(parts: ReconcileParts, run: Run, page: Checked[]): Promise<void> {
  await keepLease(parts.database, run); // the answers may have taken a long time
  const limits = { who: "reconciliation", reason: "not received", maxPerEvent: 3 };
  const republished = await settleChecked(parts, page, limits);
  const missing = page.filter(({ state }) => state === "MISSING");
  if (missing.length === 0) return;
  parts.log.error("{missing} events were not received, {mended} of them are published again", {
    missing: missing.length,
    mended: republished.size,
    event_id: missing[0]?.event.event_id,
  });
}

async function showFigures(database: Database): Promise<void> {
  const [figures] = await query<{ missing: number; dead: number; proven_until: number }>(
    database,
    `select count(open.event_id) filter (where open.state = 'MISSING') as missing,
       count(open.event_id) filter (where open.state = 'DEAD') as dead,
       extract(epoch from max(proven_until))::float8 as proven_until
     from reconciliation
     left join unreceived_events open on true`,
  );
  if (!figures) return;
  unreceivedEvents.set({ state: "MISSING" }, figures.missing);
  unreceivedEvents.set({ state: "DEAD" }, figures.dead);
  provenUntilGauge.set(figures.proven_until);
}
