// Orders and endpoints as the service stores them, and what must be there when they were sent.
import type pg from "pg";
import { encryptSecret, newSecret } from "../../notification/endpoints/secrets.ts";
import type { DatabaseUrls } from "../load/stage.ts";
import { expectRows, uuidOfRow } from "./database.ts";

export const secretKey = new Uint8Array(32).fill(7);
const caller = "bench";

export interface Endpoint {
  id: string;
  url: string;
  ordering: "none" | "key" | "endpoint";
  atOnce: number;
  isDead?: boolean;
}

export async function addEndpoint(owner: pg.Client, endpoint: Endpoint): Promise<void> {
  const { id, url, ordering, atOnce, isDead = false } = endpoint;
  await owner.query(
    `insert into endpoints
       (endpoint_id, caller, url, ordering, at_once, state, failing_since, next_probe_at, failures)
     select $1, $2, $3, $4, $5, case when is_dead then 'FAILING' else 'ACTIVE' end,
       case when is_dead then now() end, case when is_dead then now() end,
       case when is_dead then 5 else 0 end
     from (select $6::boolean as is_dead) as given`,
    [id, caller, url, ordering, atOnce, isDead],
  );
  await owner.query("insert into endpoint_secrets (endpoint_id, ciphertext) values ($1, $2)", [
    id,
    encryptSecret([secretKey], id, newSecret()),
  ]);
}

export async function forgetOrders(owner: pg.Client): Promise<void> {
  await owner.query(
    "truncate outbox_orders, idempo_ledger, order_attempts, endpoints, endpoint_secrets",
  );
}

/** The payload of a plain order, and of a webhook the fields of an event. */
export const payload = {
  user_id: "user-12345",
  stock_keeping_unit: "premium",
  source: "purchase",
  source_id: "purchase-12345",
  version: 1,
};

// Rows that are due at the very same time would be found again and again by each claim.
const dueInTurn = "now() - ($1 - number) * interval '1 microsecond'";

/** Orders to one url. The worker sees them all at once. */
export async function addPlainOrders(owner: pg.Client, orders: number, url: string): Promise<void> {
  await owner.query(
    `insert into outbox_orders
       (id, idempotency_key, caller, adapter, order_request_json, request_digest, lane,
        aggregate_key, position, trace_id, next_run_at)
     select id, '${caller}:' || id, '${caller}', 'http', $2, md5(id::text), $3, id, 0,
       md5(id::text), ${dueInTurn}
     from (select number, ${uuidOfRow("clock_timestamp()")} as id
       from generate_series(1, $1::int) as number) as wanted`,
    [orders, JSON.stringify({ adapter: "http", url, payload }), new URL(url).origin],
  );
}

export interface Webhooks {
  orders: number;
  endpoints: Endpoint[]; // who share them
  keys: number; // of each endpoint
  parked?: boolean;
}

/** Webhooks of events, by turns to each endpoint and about each key. */
export async function addWebhooks(owner: pg.Client, webhooks: Webhooks): Promise<void> {
  const { orders, endpoints, keys, parked = false } = webhooks;
  const aggregateKey = `case ordering when 'key' then endpoint_id || ':user-' || key
    when 'endpoint' then endpoint_id::text else endpoint_id || ':' || id end`;
  await owner.query(
    `insert into outbox_orders
       (id, idempotency_key, caller, adapter, order_request_json, request_digest, lane,
        endpoint_id, event_id, event_type, user_id, aggregate_key, position, trace_id, next_run_at, status)
     select id, id || ':' || endpoint_id, '${caller}', 'webhook',
       json_build_object('adapter', 'http', 'endpoint_id', endpoint_id, 'payload',
         json_build_object('type', 'EntitlementGranted', 'timestamp', '2026-01-02T03:04:05.678Z',
           'data', $4::jsonb || jsonb_build_object('user_id', 'user-' || key, 'version', number))),
       md5(id::text), endpoint_id, endpoint_id, id, 'EntitlementGranted', 'user-' || key,
       ${aggregateKey}, number, md5(id::text), ${dueInTurn},
       $5
     from (select number, number / cardinality($2::uuid[]) % $3::int as key,
         ($2::uuid[])[1 + number % cardinality($2::uuid[])] as endpoint_id,
         ${uuidOfRow("clock_timestamp()")} as id
       from generate_series(1, $1::int) as number) as wanted
     join endpoints using (endpoint_id)`,
    [
      orders,
      endpoints.map(({ id }) => id),
      keys,
      JSON.stringify(payload),
      parked ? "PARKED" : "PENDING",
    ],
  );
}

/** Fails unless so many were sent, each at the first attempt, and the ledger knows it. */
export async function assertSent(database: DatabaseUrls, orders: number): Promise<void> {
  await expectRows(
    database,
    orders,
    `outbox_orders o join idempo_ledger ledger using (idempotency_key)
     where o.status = 'SUCCEEDED' and o.attempts = 0 and ledger.status = 'SUCCEEDED'
       and ledger.http_status = 200 and ledger.request_digest = o.request_digest`,
  );
}
