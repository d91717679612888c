import { type Database, query, utc } from "@kenri/shared/postgres/postgres.ts";

// A run of the reconciliation has a lease in the only row of its table. Each write presents it.

// If a replica ends during its run, the others wait no longer than this.
const lease = "interval '2 minutes'";

export interface Run {
  proven_until: string; // where the run begins
  leased_until: string; // proves the lease, because every later lease ends later
}

// Begins a run if one is due and no other replica has one.
export async function beginRun(database: Database, intervalMs: number): Promise<Run | undefined> {
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

export async function keepLease(database: Database, run: Run): Promise<void> {
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

export async function saveProgress(
  database: Database,
  run: Run,
  provenUntil: string,
): Promise<void> {
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

export async function finishRun(database: Database, run: Run): Promise<void> {
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
