import { type Database, query, utc } from "@kenri/shared/postgres/postgres.ts";

export interface Bounds {
  before: string; // later rows are verified but not counted, because changes continue meanwhile
  dropped_until: string; // earlier rows may have been dropped for their age; "" if none were
  all_hashed_since: string; // later rows were written by releases that hash every row
}

// A day after the migration that added hashes, no replica of the release before is left.
const updatedWithinHours = 24;
const firstWithHashes = 6; // of the migrations

// Every change that occurred before this time is committed, because each one that is under way
// began later.
const committed = `(select least(now(), min(xact_start))
         from pg_stat_activity
         where datname = current_database() and pid <> pg_backend_pid())`;

export async function findBounds(database: Database, before?: string): Promise<Bounds> {
  const [bounds] = await query<Bounds & Record<string, unknown>>(
    database,
    `select ${utc(`coalesce($1::timestamptz, ${committed})`)} as before,
       case when isfinite(dropped_until) then ${utc("dropped_until")} else '' end as dropped_until,
       ${utc("applied_at + make_interval(hours => $2)")} as all_hashed_since
     from audit_retention
     join schema_migrations on schema_migrations.version = $3`,
    [before ?? null, updatedWithinHours, firstWithHashes],
  );
  return bounds as Bounds;
}
