import type { Gauge } from "prom-client";
import type { Database } from "../postgres/postgres.ts";
import { countBacklog } from "../queue/backlog.ts";
import type { AnyTable } from "../queue/leased_table.ts";
import type { Figure } from "../telemetry/collected.ts";
import { countDead, type DeadTable } from "./dead_rows.ts";

// The metrics of a queue: what waits in its table, and what failed for good. Each reads an index
// that contains nothing else.

const countedAtMost = 100_000;

export interface QueueGauges {
  table: AnyTable;
  waiting: Gauge<string>;
  ageSeconds: Gauge<string>; // of the oldest row that waits; 0 when none waits
  dead: { table: DeadTable; gauge: Gauge<string>; labels?: Record<string, string> }[];
}

export async function queueFigures(
  database: Database,
  { table, waiting, ageSeconds, dead }: QueueGauges,
): Promise<Figure[]> {
  const [backlog, ...counts] = await Promise.all([
    countBacklog(database, table, countedAtMost),
    ...dead.map(({ table }) => countDead(database, table, countedAtMost)),
  ]);
  return [
    { gauge: waiting, value: backlog.waiting },
    { gauge: ageSeconds, value: Math.max(0, backlog.oldest_waiting_seconds ?? 0) },
    ...dead.map(({ gauge, labels }, i) => ({ gauge, labels, value: counts[i] ?? 0 })),
  ];
}
