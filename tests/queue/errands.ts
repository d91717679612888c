// A leased table of its own: errands are due at a time, some have an order, and each has a shop.
import { type Database, openDatabase } from "../../shared/postgres/postgres.ts";
import { sql } from "../../shared/postgres/sql.ts";
import { Handover } from "../../shared/queue/handover.ts";
import type { Job, Outcome } from "../../shared/queue/job.ts";
import type { LeasedRow } from "../../shared/queue/leased_row.ts";
import { byDueTime, leasedTable } from "../../shared/queue/leased_table.ts";
import { Worker } from "../../shared/queue/worker.ts";
import { ask, withClient } from "../../tools/servers/asking.ts";
import { freshDatabase, type TestDatabase } from "../support/databases.ts";
import { collectingLog } from "../support/relays.ts";

export interface Errand {
  nr: number;
}

export type ErrandRow = LeasedRow<Errand>;

export const errands = leasedTable<Errand, string>({
  name: "errands",
  id: "errand_id",
  attempts: "errand_attempts",
  working: "RUNNING",
  order: byDueTime("due_at", "nr"),
  content: sql`nr`,
  lane: { of: sql`shop`, most: 8 },
  done: {
    status: "DONE",
    set: sql`result = settled.result`,
    values: { result: { type: "text", of: (_, result) => result } },
  },
});

const tables = `
create table errands (
  errand_id uuid primary key default gen_random_uuid(),
  nr bigint generated always as identity,
  shop text not null default 'shop',
  aggregate_key text collate "C" not null default gen_random_uuid()::text,
  execute_at timestamptz not null default now(),
  status text not null default 'PENDING',
  unfinished boolean not null generated always as (status in ('PENDING', 'RUNNING')) stored,
  attempt_count integer not null default 0,
  next_retry_at timestamptz,
  due_at timestamptz not null generated always as (coalesce(next_retry_at, execute_at)) stored,
  locked_by text,
  locked_at timestamptz,
  lease_until timestamptz,
  claim_token uuid,
  last_error text,
  result text
);
create index errands_due on errands (due_at) where unfinished;
create index errands_of_key on errands (aggregate_key, nr) where unfinished::int = 1;
create table errand_attempts (
  attempt_id bigint generated always as identity primary key,
  errand_id uuid not null,
  outcome text not null,
  ended_at timestamptz not null default now(),
  worker text,
  begun_at timestamptz,
  error text
);
grant select, insert, update, delete on errands, errand_attempts to public;
`;

export async function freshErrands(): Promise<TestDatabase> {
  const database = await freshDatabase("notification");
  await withClient(database.ownerUrl, (owner) => owner.query(tables));
  return database;
}

export interface State extends Record<string, unknown> {
  nr: number;
  status: string;
  attempt_count: number;
  result: string | null;
}

export function statesOf({ ownerUrl }: { ownerUrl: string }): Promise<State[]> {
  return ask<State>(
    ownerUrl,
    "select nr::int, status, attempt_count, result from errands order by nr",
  );
}

export interface Running extends AsyncDisposable {
  log: string[];
  wake(): void;
}

type More = Partial<Pick<Job<ErrandRow, string>, "atOnce" | "leaseMs" | "pollIntervalMs">>;

/** A worker with a pool of its own, which polls once an hour. */
export function startWorker(
  { serviceUrl }: { serviceUrl: string },
  work: (row: ErrandRow) => Promise<Outcome<string>>,
  more: More = {},
): Running {
  const database: Database = openDatabase(serviceUrl, "test");
  const { log, lines } = collectingLog();
  const stop = new AbortController();
  const options = {
    worker: "test",
    batchSize: 20,
    leaseMs: 30_000,
    pollIntervalMs: 3_600_000,
    maxAttempts: 1_000,
    backoff: { baseMs: 20, maxMs: 20, minMs: 0, jitterMin: 1, jitterMax: 1 },
    ...more,
  };
  const worker = new Worker<ErrandRow, string>(
    {
      name: "errands",
      ...options,
      claim: errands.claimRepeatedly(database, options),
      work,
      settle: (settled) => errands.settle(database, settled),
      extend: (rows) => errands.extend(database, rows, options.leaseMs),
      stepOf: () => ({ name: "errand", kind: "client" }),
      traceparentOf: () => null,
      about: () => ({}),
    },
    log,
    new AbortController().signal,
  );
  const handover = new Handover<ErrandRow>();
  const running = worker.run(handover, stop.signal);
  return {
    log: lines,
    wake: () => handover.wake.trigger(),
    [Symbol.asyncDispose]: async () => {
      stop.abort();
      await running;
      await database.end();
    },
  };
}
