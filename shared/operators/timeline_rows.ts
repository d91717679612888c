import { type Database, query, utc } from "../postgres/postgres.ts";
import { findAttempts } from "../queue/attempts.ts";
import { listOf } from "../postgres/sql.ts";
import { type AnyTable, columnsOf } from "../queue/leased_table.ts";
import type { EventTimeline, Step } from "./timeline.ts";

// What happened to the rows of a table of leased rows, as steps of the timelines of their events.

export interface TimelineTable {
  table: AnyTable;
  columns: string; // that the owner needs as well
  foundBy?: string; // the column of the ids by which rows are found; else event_id
  begun: { step: string; at: string }; // the first step, at the time in the column `at`
  done: { statuses: string[]; at: string }; // the last step, at the time in the column `at`
  attemptsHaveSequence: boolean; // of the stream
}

export interface TimelineRow extends Record<string, unknown> {
  id: string;
  found_by: string;
  status: string;
  attempt_count: number;
  next_retry_at: string | null;
  begun_at: string;
  done_at: string | null;
  locked_at: string | null;
  locked_by: string | null;
}

export interface RowTimeline<Row> {
  row: Row;
  steps: Step[];
}

/** The rows with these ids and their steps, by that id. */
export async function findRowTimelines<Row extends TimelineRow>(
  database: Database,
  of: TimelineTable,
  ids: string[],
): Promise<Map<string, RowTimeline<Row>>> {
  const { table: { description: { id, attempts } }, attemptsHaveSequence } = of;
  const rows = await findRows<Row>(database, of, ids);
  const tried = await findAttempts(
    database,
    { name: attempts, id, withSequence: attemptsHaveSequence },
    rows.map(({ id }) => id),
  );
  return new Map(rows.map((row) => [
    row.found_by,
    { row, steps: stepsOf(row, tried.get(row.id) ?? [], of) },
  ]));
}

function findRows<Row extends TimelineRow>(
  database: Database,
  { table: { description }, columns, foundBy = "event_id", begun, done }: TimelineTable,
  ids: string[],
): Promise<Row[]> {
  const { name, id } = description;
  const { attempts, retryAt } = columnsOf(description);
  return query<Row>(
    database,
    `select ${id} as id, ${foundBy} as found_by, status, ${attempts.text} as attempt_count,
       ${utc(retryAt.text)} as next_retry_at,
       ${utc(begun.at)} as begun_at, ${utc(done.at)} as done_at,
       ${utc("locked_at")} as locked_at, locked_by, ${columns}
     from ${name}
     where ${foundBy} = any($1::uuid[])`,
    [listOf(ids)],
  );
}

function stepsOf(
  row: TimelineRow & { stream_seq?: number | null },
  tried: Step[],
  { table: { description: { working } }, begun, done }: TimelineTable,
): Step[] {
  const { status, begun_at, done_at, locked_at, locked_by, stream_seq } = row;
  return [
    { at: begun_at, step: begun.step },
    ...tried,
    ...(done.statuses.includes(status) && done_at !== null
      ? [{ at: done_at, step: status, ...(stream_seq ? { stream_seq } : {}) }]
      : []),
    ...(status === working && locked_at !== null
      ? [{ at: locked_at, step: status, worker: locked_by }]
      : []),
  ];
}

/** What a timeline shows of the state of a row; `absent` is the status without one. */
export function stateOf(
  row: TimelineRow | undefined,
  absent: string,
): Pick<EventTimeline, "status" | "attempt_count" | "next_retry_at"> {
  return {
    status: row?.status ?? absent,
    attempt_count: row?.attempt_count ?? 0,
    next_retry_at: row?.next_retry_at ?? null,
  };
}
