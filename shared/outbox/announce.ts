import { query, type Transaction } from "../postgres/postgres.ts";
import { type Sql, sql } from "../postgres/sql.ts";
import type { NewLease } from "../queue/handover.ts";
import { leasedRow, type ReturnedRow } from "../queue/leased_row.ts";
import { leaseColumns, leasedColumns, leaseValues } from "../queue/new_lease.ts";
import type { OutboxContent, OutboxRow, OutboxTable } from "./outbox_table.ts";

// Events are inserted in the transaction of what they are about. `events` is a select of event_id,
// event_type, aggregate_key, payload, traceparent and created_at, whose owner builds the payload.

// Returns the events that were inserted as leased, for the relay of this process.
export async function announce(
  tx: Transaction,
  outbox: OutboxTable,
  events: Sql,
  lease: NewLease | undefined,
): Promise<OutboxRow[]> {
  const leased = await query<ReturnedRow & OutboxContent>(
    tx,
    sql`with inserted as (
  ${insertsEvents(outbox, events, lease)}
  returning *
)
select ${leasedColumns(outbox.description)}
from inserted
where claim_token is not null`,
  );
  return leased.map((row) => leasedRow<OutboxContent>(row, lease?.token ?? ""));
}

// The part of a statement that inserts events. Without a lease they are PENDING.
export function insertsEvents(outbox: OutboxTable, events: Sql, lease?: NewLease): Sql {
  const position = sql`event.created_at`;
  return sql`insert into ${outbox.table}
    (event_id, event_type, aggregate_key, payload, traceparent, created_at, ${leaseColumns})
  select event_id, event_type, aggregate_key, payload, traceparent, created_at, ${leaseValues}
  from (
    ${events}
    offset 0 -- so that each column is computed once
  ) as event
  ${outbox.newLease({ key: sql`event.aggregate_key`, position }, lease)}`;
}
