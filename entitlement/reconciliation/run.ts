import type { Log } from "@kenri/shared/process/log.ts";
import { provenUntil as provenUntilGauge, unreceivedEvents } from "../metrics.ts";
import { type Database, query, utc } from "@kenri/shared/postgres/postgres.ts";
import { pause } from "@kenri/shared/process/signals.ts";
import { Trouble } from "@kenri/shared/process/trouble.ts";
import { checkAudit, type Checked, checkedAtOnce, checkOpen, firstId } from "./check.ts";
import type { AskReceiver } from "./ask.ts";
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
  const run = await begin(database, intervalMs);
  if (!run) return;
  await recheckOpen(parts, run, graceSeconds, stop);
  await provePages(parts, run, graceSeconds, stop);
  if (!stop.aborted) await finish(database, run);
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

// If a replica ends during its run, the others wait no longer than this.
const lease = "interval '2 minutes'";

interface Run {
  proven_until: string; // where the run begins
  leased_until: string; // proves the lease, because every later lease ends later
}

// Begins a run if one is due and no other replica has one.
async function begin(database: Database, intervalMs: number): Promise<Run | undefined> {
  const [run] = await query<Run & Record<string, unknown>>(
    database,
    `update reconciliation
     set leased_until = now() + ${lease}
     where (leased_until is null or leased_until < now())
       and checked_at <= now() - make_interval(secs => $1::float8 / 1000)
     returning ${utc("proven_until")} as proven_until, ${utc("leased_until")} as leased_until`,
    [intervalMs],
  );
  return run;
}

export async function timeBefore(database: Database, seconds: number): Promise<string> {
  const [found] = await query<{ time: string }>(
    database,
    `select ${utc("now() - make_interval(secs => $1)")} as time`,
    [seconds],
  );
  return found?.time ?? "";
}

async function keepLease(database: Database, run: Run): Promise<void> {
  const kept = await query<{ leased_until: string }>(
    database,
    `update reconciliation
     set leased_until = now() + ${lease}
     where leased_until = $1
     returning ${utc("leased_until")} as leased_until`,
    [run.leased_until],
  );
  run.leased_until = stillOurs(kept).leased_until;
}

async function saveProgress(database: Database, run: Run, provenUntil: string): Promise<void> {
  const saved = await query(
    database,
    `update reconciliation
     set proven_until = greatest(proven_until, $1)
     where leased_until = $2
     returning 1`,
    [provenUntil, run.leased_until],
  );
  stillOurs(saved);
}

async function finish(database: Database, run: Run): Promise<void> {
  const finished = await query(
    database,
    `update reconciliation
     set checked_at = now(), leased_until = null
     where leased_until = $1
     returning 1`,
    [run.leased_until],
  );
  stillOurs(finished);
}

// A replica that was delayed for longer than its lease must leave the run to the replica that took
// over.
function stillOurs<Row>([row]: Row[]): Row {
  if (!row) throw new Error("the run outlasted its lease, and another replica has taken over");
  return row;
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
