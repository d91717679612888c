-- Orders: sends to the outside, each made once in effect and on record. The names of the columns are
-- those of the design note that this follows.

-- idempotency_keys: the answer that was given under each key, refusals included, until it expires.
create table idempotency_keys (
  idem_key text collate "C" primary key check (length(idem_key) between 1 and 600),
  request_hash text not null,
  response_code smallint not null,
  response_body text not null,
  created_at timestamptz not null,
  expires_at timestamptz not null
);
create index idempotency_keys_by_expiry on idempotency_keys (expires_at);

-- endpoints: where subscribers want events. A deleted one stays until its orders have ended.
create table endpoints (
  endpoint_id uuid primary key,
  caller text collate "C" not null,
  url text not null check (length(url) between 1 and 2048),
  event_types text[], -- null for all
  user_id text collate "C", -- null for all
  ordering text not null check (ordering in ('none', 'key', 'endpoint')),
  at_once integer not null check (at_once between 1 and 1000),
  description text,
  state text not null default 'ACTIVE'
    check (state in ('ACTIVE', 'PAUSED', 'FAILING', 'DISABLED', 'GONE', 'DELETED')),
  state_since timestamptz not null default now(),
  -- It is ACTIVE again, but some of its orders are still PARKED. New ones are parked behind them.
  is_draining boolean not null default false,
  failures integer not null default 0, -- in a row, of the kind that says it can't be reached
  failing_since timestamptz,
  probes integer not null default 0, -- since it is FAILING
  next_probe_at timestamptz,
  probe_order_id uuid, -- the parked order that was let through as a probe
  last_success_at timestamptz,
  last_failure_at timestamptz,
  last_reason text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  check (state <> 'FAILING' or (failing_since is not null and next_probe_at is not null))
);
create index endpoints_of_caller on endpoints (caller, created_at desc, endpoint_id desc);
create index endpoints_unwell on endpoints (endpoint_id) where state <> 'ACTIVE' or is_draining;

-- endpoint_secrets: what webhooks are signed with, encrypted. Each has one secret without an end, and
-- during a rotation others until their end.
create table endpoint_secrets (
  secret_id bigint generated always as identity primary key,
  endpoint_id uuid not null references endpoints on delete cascade,
  ciphertext bytea not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz
);
create index endpoint_secrets_of_endpoint on endpoint_secrets (endpoint_id);

-- outbox_orders: each send from its acceptance, or from the event that it is about.
create table outbox_orders (
  id uuid primary key,
  idempotency_key text collate "C" not null unique check (length(idempotency_key) between 1 and 600),
  caller text collate "C" not null, -- who gave the order, or who has the endpoint
  adapter text not null check (adapter in ('http', 'webhook')),
  order_request_json json not null,
  request_digest text not null,
  lane text collate "C" not null, -- the endpoint, or the origin of the url
  endpoint_id uuid,
  event_id uuid, -- with its type and user, of an order that is about an event
  event_type text,
  user_id text collate "C",
  -- Begins with the endpoint, so that all orders of an endpoint are side by side in the index of keys.
  aggregate_key text collate "C" not null,
  position bigint not null,
  awaits_predecessor boolean not null default false,
  status text not null default 'PENDING'
    check (status in ('PENDING', 'SENDING', 'SUCCEEDED', 'FAILED', 'ABORTED', 'PARKED')),
  -- No index depends on status, so a claim can update a row without touching any index.
  unfinished boolean not null generated always as (status in ('PENDING', 'SENDING', 'FAILED')) stored,
  parked boolean not null generated always as (status = 'PARKED') stored,
  attempts integer not null default 0 check (attempts >= 0),
  last_error_code text,
  last_error_msg text check (length(last_error_msg) <= 512),
  next_run_at timestamptz,
  due_at timestamptz not null generated always as (coalesce(next_run_at, created_at)) stored,
  locked_by text,
  locked_at timestamptz,
  lease_until timestamptz,
  claim_token uuid,
  throttled_since timestamptz,
  first_sent_at timestamptz,
  operation_id uuid, -- the last one that had the order sent again
  trace_id text not null,
  traceparent text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  finished_at timestamptz,
  expires_at timestamptz,
  -- What an operator can send back. Nobody can send what was withdrawn.
  is_dead boolean not null generated always as (status = 'ABORTED'
    and coalesce(last_error_code, '') not in ('ENDPOINT_DELETED', 'USER_ERASED')) stored,
  check (adapter <> 'webhook' or endpoint_id is not null),
  check (status not in ('SUCCEEDED', 'ABORTED') or finished_at is not null)
) with (fillfactor = 60); -- each page has room for the claims of its rows
create index outbox_orders_due on outbox_orders (due_at) where unfinished;
create index outbox_orders_line on outbox_orders (aggregate_key, position) where unfinished::int = 1;
create index outbox_orders_parked on outbox_orders (endpoint_id, created_at, position) where parked;
create index outbox_orders_parked_line on outbox_orders (aggregate_key, position) where parked;
create index outbox_orders_waits on outbox_orders (event_id) where awaits_predecessor;
create index outbox_orders_of_endpoint on outbox_orders (endpoint_id, created_at, id)
  where endpoint_id is not null;
create index outbox_orders_of_user on outbox_orders (user_id) where user_id is not null;
create index outbox_orders_finished on outbox_orders (finished_at) where finished_at is not null;
create index outbox_orders_dead on outbox_orders (id) where is_dead;

-- idempo_ledger: how each order ended. It outlives the order.
create table idempo_ledger (
  idempotency_key text collate "C" primary key,
  request_digest text not null,
  status text not null check (status in ('SUCCEEDED', 'FAILED')),
  http_status integer,
  reason_code text,
  response_payload_json json,
  adapter text,
  attempts integer not null default 0,
  first_sent_at timestamptz,
  decided_at timestamptz not null default now(),
  order_id uuid,
  operation_id uuid
);
create index idempo_ledger_by_age on idempo_ledger using brin (decided_at);

-- order_attempts: each send with its request and its answer, and what else happened to an order.
-- Deleted with the order.
create table order_attempts (
  id uuid not null,
  attempt_id bigint generated always as identity,
  outcome text not null check (outcome in
    ('SUCCEEDED', 'RETRIED', 'GAVE_UP', 'PUT_OFF', 'PROBED', 'TAKEN_OVER', 'SENT_BACK', 'REPLAYED')),
  worker text,
  begun_at timestamptz,
  ended_at timestamptz not null default now(),
  error text,
  operation_id uuid,
  endpoint_id uuid, -- of a send to an endpoint
  reason_code text,
  request_headers json,
  http_status integer,
  response_headers json,
  response_body text,
  is_json boolean, -- whether the body of the response is JSON
  primary key (id, attempt_id)
);
create index order_attempts_of_endpoint on order_attempts (endpoint_id, attempt_id)
  where endpoint_id is not null;

alter table operations drop constraint operations_kind_known;
alter table operations add constraint operations_kind_known
  check (kind in ('SEND_BACK', 'ERASE_USER', 'REPLAY')) not valid;
alter table operations drop constraint operations_layer_known;
alter table operations add constraint operations_layer_known
  check (layer in ('advisory', 'delivery', 'user', 'order')) not valid;
