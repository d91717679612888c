import { firstId, firstPosition } from "@kenri/shared/http/cursor.ts";
import { type Database, query, utc } from "@kenri/shared/postgres/postgres.ts";
import { nothing, sql } from "@kenri/shared/postgres/sql.ts";

// The checks of one page of rows each. A row is compared by subqueries, which PostgreSQL answers from
// an index for each row, however large it thinks the page is.

export const kinds = [
  "BALANCE", // a balance is not that of its last transaction
  "NEGATIVE", // a balance, or the balance after a transaction
  "GAP", // the transaction before this one is missing
  "SUM", // the balance after this one is not the one before plus its points
  "EXTRA", // the balance does not know this transaction
  "AUDIT", // a transaction has no audit row, or one that says something else
  "RESERVATION", // a reservation is done, but its transaction is missing
] as const;

export type PointsProblemKind = (typeof kinds)[number];

interface Page {
  userId: string | undefined; // absent: all users
  after: (string | number)[]; // the position of the last row of the page before
  limit: number;
  auditedSince: string; // older audit rows were dropped; "" if none were
}

interface Row extends Record<string, unknown> {
  user_id: string;
  unit: string;
  version: number | null;
  id: string | null;
  kind: PointsProblemKind | null;
}

interface Checked {
  checked: number;
  problems: Row[];
  last: (string | number)[] | undefined; // absent after the last page
}

function checkedOf<Found extends Row>(
  rows: Found[],
  { limit }: Page,
  positionOf: (row: Found) => (string | number)[],
): Checked {
  const last = rows.at(-1);
  return {
    checked: rows.length,
    problems: rows.filter(({ kind }) => kind !== null).map(
      ({ user_id, unit, version, id, kind }) => ({ kind, user_id, unit, version, id }),
    ),
    last: rows.length === limit && last ? positionOf(last) : undefined,
  };
}

const ofUser = (userId: string | undefined) =>
  userId === undefined ? nothing : sql`and user_id = ${userId}`;

export async function checkBalances(database: Database, page: Page): Promise<Checked> {
  const { userId, after: [user = userId ?? "", unit = ""], limit } = page;
  const rows = await query<Row>(
    database,
    sql`with page as materialized (
      select user_id, unit, version, balance
      from point_root
      where (user_id, unit) > (${user}, ${unit})
        ${ofUser(userId)}
      order by user_id, unit
      limit ${limit}
    )
    select user_id, unit, version, null as id,
      case
        when balance < 0 then 'NEGATIVE'
        when balance is distinct from (
          select balance_after
          from point_transactions last
          where last.user_id = page.user_id
            and last.unit = page.unit
            and last.version = page.version
        ) then 'BALANCE'
      end as kind
    from page
    order by user_id, unit`,
  );
  return checkedOf(rows, page, (row) => [row.user_id, row.unit]);
}

// If each transaction follows the one before, the last one has the sum of all and their number.
export async function checkTransactions(database: Database, page: Page): Promise<Checked> {
  const { userId, after: [user = userId ?? "", unit = "", version = 0], limit } = page;
  const rows = await query<Row>(
    database,
    sql`with page as materialized (
      select id, user_id, unit, version, point_amount, balance_after, created_at,
        (select balance_after
         from point_transactions before
         where before.user_id = row.user_id
           and before.unit = row.unit
           and before.version = row.version - 1) as balance_before
      from point_transactions row
      where (user_id, unit, version) > (${user}, ${unit}, ${version})
        ${ofUser(userId)}
      order by user_id, unit, version
      limit ${limit}
    )
    select user_id, unit, version, id,
      case
        when balance_after < 0 then 'NEGATIVE'
        when version > 1 and balance_before is null then 'GAP'
        when balance_after <> coalesce(balance_before, 0) + point_amount then 'SUM'
        when not exists (
          select
          from point_root
          where point_root.user_id = page.user_id
            and point_root.unit = page.unit
            and point_root.version >= page.version
        ) then 'EXTRA'
        when created_at >= ${page.auditedSince || "-infinity"} and not exists (
          select
          from entitlement_audit audit
          where audit.occurred_at = page.created_at
            and audit.audit_id = page.id
            and audit.stock_keeping_unit = 'points:' || page.unit
            and audit.detail @> jsonb_build_object('version', page.version,
              'point_amount', page.point_amount, 'balance', page.balance_after)
        ) then 'AUDIT'
      end as kind
    from page
    order by user_id, unit, version`,
  );
  return checkedOf(rows, page, (row) => [row.user_id, row.unit, row.version ?? 0]);
}

// Those of one user are in the order of the index that begins with the user.
export async function checkReservations(database: Database, page: Page): Promise<Checked> {
  const { userId, after: [time = firstPosition[0], id = firstId], limit } = page;
  const [at, condition] = userId === undefined
    ? ["done_at", "done_at is not null"]
    : ["execute_at", "user_id = $4"];
  const rows = await query<Row & { id: string; at: string; is_done: boolean }>(
    database,
    `with page as materialized (
       select id, user_id, coalesce(unit, '') as unit, ${at} as at, transaction_id, point_amount,
         kind = 'POINTS' and status = 'DONE' as is_done
       from point_reservations
       where (${at}, id) > ($1::timestamptz, $2::uuid)
         and ${condition}
       order by ${at}, id
       limit $3
     )
     select user_id, unit, null as version, id, ${utc("page.at")} as at, is_done,
       case when is_done and not exists (
         select
         from point_transactions row
         where row.id = page.transaction_id
           and row.reservation_id = page.id
           and row.point_amount = page.point_amount
       ) then 'RESERVATION' end as kind
     from page
     order by page.at, id`,
    [time, id, limit, ...userId === undefined ? [] : [userId]],
  );
  const { problems, last } = checkedOf(rows, page, (row) => [row.at, row.id]);
  return { checked: rows.filter(({ is_done }) => is_done).length, problems, last };
}
