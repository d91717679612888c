// How reservations and the one balance of the model are stored in the entitlement database.
import { type Database, query } from "../../../shared/postgres/postgres.ts";
import { freshDatabase } from "../../support/databases.ts";
import {
  asRecords,
  byEvent,
  eventOf,
  idOf,
  leasedColumns,
  leasedValues,
  rowOfModel,
  type StoredRow,
  tokenOf,
} from "./leased_rows.ts";
import type { TableAccess } from "./real_calls.ts";
import {
  events,
  type Points,
  type PointsTransaction,
  type ReservationRow,
  type StoredPointsAnswer,
} from "./state.ts";

export const balance = { userId: "ann", unit: "points" };
const ofBalance = `'${balance.userId}', '${balance.unit}'`;

/** Of the requests, as they were first stored. */
const hashes = new Map<string, string>();

export const pointsAccess: TableAccess<Points> = {
  freshDatabase: () => freshDatabase("entitlement"),
  names: [
    ...["point_reservations", "reservation_attempts", "point_transactions", "point_root"],
    ...["entitlement_audit", "outbox_events", "idempotency_keys", "operations"],
  ],
  tokenOf,
  load: ({ rows, transactions, roots, answers }) =>
    [
      // The key of a reservation is the id that it has in the model, whatever id it gets.
      `insert into point_reservations
         (id, kind, caller, idempotency_key, user_id, unit, point_amount, execute_at, trace_id,
          aggregate_key, position, created_at, updated_at, done_at, transaction_id, ${leasedColumns})
       select id, 'POINTS', '', id, ${ofBalance}, 1,
         now() + case when early then interval '1 hour' else interval '-1 hour' end, 't', id, id,
         now(), now(), case when status in ('DONE', 'CANCELLED') then now() end, id, ${leasedValues}
       from ${asRecords(rows, "early boolean")}`,
      ...loadTransactions(transactions),
      ...roots.map((root) =>
        `insert into point_root values (${ofBalance}, ${root.balance}, ${root.version}, now(), '')`
      ),
      ...answers.map(({ of, status }) =>
        `insert into idempotency_keys
         values ('${of}', '${hashes.get(of)}', ${status}, '{}', now(), now() + interval '1 hour')`
      ),
    ].join(";\n"),
  lock: (event) => `select from point_reservations where id = '${idOf(event)}' for update`,
  async read(owner) {
    const found = await query<StoredRow<ReservationRow>>(
      owner,
      `select idempotency_key as event_id, ${rowOfModel}, execute_at > now() as early
       from point_reservations`,
    );
    const { rows, tokens } = byEvent<ReservationRow>(found);
    const [transactions, answers] = [await readTransactions(owner), await readAnswers(owner)];
    const roots = await query<Points["roots"][0]>(owner, "select balance, version from point_root");
    return { tokens, tables: { rows, transactions, roots, answers } };
  },
};

function loadTransactions(transactions: PointsTransaction[]): string[] {
  if (transactions.length === 0) return [];
  const records = transactions.map(({ of, ...row }) => {
    const event = events.findIndex(({ name }) => name === of);
    const reservation = event < 0 ? null : idOf(event);
    const id = `00000000-0000-7000-8000-0000000001${row.version.toString().padStart(2, "0")}`;
    return { ...row, id, reservation, key: reservation ? `reservation:${reservation}` : of };
  });
  const from = `from json_to_recordset('${JSON.stringify(records)}') as row (
    id uuid, reservation uuid, key text, amount bigint, balance bigint, version bigint, events int,
    audits int)`;
  return [
    `insert into point_transactions
       (id, idempotency_key, user_id, unit, kind, point_amount, balance_after, version, source,
        source_id, reservation_id, created_at)
     select id, key, ${ofBalance}, case when amount > 0 then 'GRANT' else 'SPEND' end, amount, balance,
       version, 's', 's', reservation, now() ${from}`,
    `insert into outbox_events (event_id, event_type, aggregate_key, payload, created_at)
     select id, 'PointsAdded', 'k', '{}', now() ${from} where events > 0`,
    `insert into entitlement_audit
       (audit_id, occurred_at, user_id, stock_keeping_unit, action, source, source_id, request_id,
        detail)
     select id, now(), ${ofBalance}, 'POINTS_ADD', 's', 's', key, '{}' ${from} where audits > 0`,
  ];
}

async function readTransactions(owner: Database): Promise<PointsTransaction[]> {
  const found = await query<PointsTransaction & { reservation_id: string | null }>(
    owner,
    `select split_part(' ' || idempotency_key, ' ', -1) as of, reservation_id, point_amount as amount, balance_after as balance,
       version,
       (select count(*)::int from outbox_events where event_id = change.id) as events,
       (select count(*)::int from entitlement_audit where audit_id = change.id) as audits
     from point_transactions change
     order by version`,
  );
  return found.map(({ reservation_id, of, ...row }) => ({
    of: reservation_id ? events[eventOf(reservation_id)]?.name ?? of : of,
    ...row,
  }));
}

async function readAnswers(owner: Database): Promise<StoredPointsAnswer[]> {
  const found = await query<StoredPointsAnswer & { hash: string }>(
    owner,
    `select idem_key as of, response_code as status, request_hash as hash
     from idempotency_keys
     where response_code <> 202
     order by idem_key`,
  );
  for (const { of, hash } of found) hashes.set(of, hash);
  return found.map(({ of, status }) => ({ of, status }));
}
