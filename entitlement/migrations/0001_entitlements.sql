-- entitlements: the source of truth, one row for each right that was ever granted or revoked.
-- version counts the changes, so a number that is missing downstream is an event that is missing.
create table entitlements (
  user_id text collate "C" not null check (length(user_id) between 1 and 255),
  stock_keeping_unit text collate "C" not null check (length(stock_keeping_unit) between 1 and 255),
  status text not null check (status in ('ACTIVE', 'REVOKED')),
  granted_at timestamptz,
  revoked_at timestamptz,
  source text not null,
  source_id text not null,
  version bigint not null check (version >= 1),
  updated_at timestamptz not null,
  primary key (user_id, stock_keeping_unit),
  check (status <> 'ACTIVE' or granted_at is not null),
  check (status <> 'REVOKED' or revoked_at is not null)
) with (fillfactor = 90); -- room on each page, so that a change need not touch the index

-- idempotency_keys: the answer given under each key, refusals included, replayed until it expires.
create table idempotency_keys (
  idem_key text collate "C" primary key check (length(idem_key) between 1 and 255),
  request_hash text not null,
  response_code smallint not null,
  response_body text not null,
  created_at timestamptz not null,
  expires_at timestamptz not null
);
create index idempotency_keys_by_expiry on idempotency_keys (expires_at);

-- outbox_events: every change as an event on its way to the stream, written with the change.
-- created_at grows strictly within one aggregate_key: it is the order of publication.
create table outbox_events (
  event_id uuid primary key,
  event_type text not null,
  aggregate_key text collate "C" not null,
  payload jsonb not null,
  traceparent text,
  status text not null default 'PENDING'
    check (status in ('PENDING', 'IN_FLIGHT', 'PUBLISHED', 'FAILED')),
  -- No index hangs on status, not even by its condition: a claim leaves all that they hang on as it
  -- is, so PostgreSQL can update the row without touching any index (a HOT update).
  unfinished boolean not null generated always as (status in ('PENDING', 'IN_FLIGHT')) stored,
  attempt_count integer not null default 0 check (attempt_count >= 0),
  next_retry_at timestamptz,
  created_at timestamptz not null default now(),
  published_at timestamptz,
  locked_by text,
  locked_at timestamptz,
  lease_until timestamptz,
  claim_token uuid, -- fresh with each claim; a settle must present it
  last_error text check (length(last_error) <= 1000),
  stream_generation bigint, -- which life of the stream stored it, and where
  stream_seq bigint,
  check (status <> 'PUBLISHED' or published_at is not null)
) with (fillfactor = 40); -- each page has room for the claims of its rows
create index outbox_events_oldest on outbox_events (created_at) where unfinished;
create index outbox_events_of_key on outbox_events (aggregate_key, created_at) where unfinished;
create index outbox_events_published on outbox_events (published_at)
  where published_at is not null;
create index outbox_events_in_stream on outbox_events (stream_generation, stream_seq)
  where stream_seq is not null;

-- stream_generations: the lives of the stream. A new one begins when the stream or its server was
-- started anew, or lost its end; events that an older life stored after kept_up_to have to be
-- published again.
create table stream_generations (
  generation bigint primary key,
  stream text not null,
  stream_created_at text not null,
  server_id text not null,
  kept_up_to bigint not null,
  found_at timestamptz not null default now()
);
