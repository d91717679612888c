import { listOf } from "../postgres/sql.ts";
import { type Database, query, utc } from "../postgres/postgres.ts";
import type { Step } from "../operators/timeline.ts";

// What happened to rows, except success, as steps of their timeline.

interface AttemptRow extends Step {
  id: string;
  [column: string]: unknown;
}

export async function findAttempts(
  database: Database,
  attempts: { name: string; id: string; withSequence: boolean },
  ids: string[],
): Promise<Map<string, Step[]>> {
  const { name, id, withSequence } = attempts;
  const rows = await query<AttemptRow>(
    database,
    `select attempt.${id} as id, attempt.outcome as step, ${utc("attempt.ended_at")} as at,
       ${utc("attempt.begun_at")} as begun_at, attempt.worker, attempt.error,
       ${withSequence ? "attempt.stream_seq" : "null"} as stream_seq,
       operation.who, operation.reason
     from unnest($1::uuid[]) as wanted (id)
     join ${name} attempt on attempt.${id} = wanted.id
     left join operations operation on operation.operation_id = attempt.operation_id
     order by attempt.attempt_id`,
    [listOf(ids)],
  );
  const steps = rows.map(({ id, ...step }) => ({ id, step: withoutNulls(step) }));
  const ofId = Map.groupBy(steps, ({ id }) => id);
  return new Map([...ofId].map(([id, found]) => [id, found.map(({ step }) => step)]));
}

function withoutNulls<Row extends object>(row: Row): Row {
  return Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null)) as Row;
}
