import { type FaultPoint, statement } from "./fault_point.ts";
import { newestVersion } from "../../database/migrated.ts";
import type { Counts } from "./observer.ts";

export interface MigrationPoint {
  dies: string;
  at: FaultPoint;
  leaves: Counts;
  next: string;
  seen: string;
}

const all = await newestVersion("entitlement");
const seen = "Services that wait for the migrations are not ready and accept no changes";

export const migrationPoints: MigrationPoint[] = [
  {
    dies: "within a migration",
    at: statement("before", "insert into schema_migrations", 2),
    leaves: { "entitlement migrations": 1 },
    next: "PostgreSQL has rolled the file back; it is applied from the beginning",
    seen,
  },
  {
    dies: "between two migrations",
    at: statement("after", "commit", 1),
    leaves: { "entitlement migrations": 1 },
    next: "The recorded file is skipped, and the next one is applied",
    seen,
  },
  {
    dies: "within a migration that has no transaction",
    at: statement("after", "create index concurrently"),
    leaves: { "entitlement migrations": 2 },
    next: "The file is applied from the beginning; each of its statements can be repeated",
    seen,
  },
  {
    dies: "between the migrations and the rights of the service",
    at: statement("before", "revoke all on schema public"),
    leaves: { "entitlement migrations": all },
    next: "No file is left to apply; the rights are granted in one transaction",
    seen,
  },
  {
    dies: "between the two databases",
    at: statement("before", "pg_try_advisory_lock", 2),
    leaves: { "entitlement migrations": all },
    next: "The first database is up to date; the second one is migrated",
    seen,
  },
];
