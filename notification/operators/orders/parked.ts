import { type Database, query } from "@kenri/shared/postgres/postgres.ts";

// What is parked, and how the endpoints are.

export interface Parked {
  parked: number;
  oldest_parked_seconds: number | null;
}

/** How many orders are parked, counted up to the given number, and since when the oldest exists. */
export async function findParked(database: Database, countUpTo: number): Promise<Parked> {
  const [found] = await query<Record<keyof Parked, number>>(
    database,
    // Only an endpoint that is not ACTIVE, or is sending its parked orders, has any.
    `select
       (select count(*)
        from (select
              from outbox_orders
              where parked
              order by endpoint_id, created_at, position
              limit $1) as found) as parked,
       (select extract(epoch from now() - min(oldest.created_at))::float8
        from endpoints endpoint
        cross join lateral (
          select created_at
          from outbox_orders
          where parked
            and endpoint_id = endpoint.endpoint_id
          order by created_at, position
          limit 1) as oldest
        where endpoint.state <> 'ACTIVE' or endpoint.is_draining) as oldest_parked_seconds`,
    [countUpTo],
  );
  return found ?? { parked: 0, oldest_parked_seconds: null };
}

export const endpointStates = ["ACTIVE", "PAUSED", "FAILING", "DISABLED", "GONE"] as const;

export type EndpointCounts = Record<(typeof endpointStates)[number], number>;

/** How many endpoints are in each state. */
export async function countEndpoints(database: Database): Promise<EndpointCounts> {
  const rows = await query<{ state: string; count: number }>(
    database,
    `select state, count(*) as count
     from endpoints
     group by state`,
  );
  const countOf = (state: string) => rows.find((row) => row.state === state)?.count ?? 0;
  return Object.fromEntries(
    endpointStates.map((state) => [state, countOf(state)]),
  ) as EndpointCounts;
}
