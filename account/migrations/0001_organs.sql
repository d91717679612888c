-- The tables of the organs that this service uses, as their owners describe them.

-- outbox: each event, from the transaction that announces it until it has been published for a while.
create table outbox_events (
  event_id uuid primary key,
  event_type text not null,
  aggregate_key text collate "C" not null,
  payload jsonb not null,
  traceparent text,
  status text not null default 'PENDING'
    check (status in ('PENDING', 'IN_FLIGHT', 'PUBLISHED', 'FAILED')),
  -- No index depends on status, so a claim can update a row without touching any index.
  unfinished boolean not null generated always as (status in ('PENDING', 'IN_FLIGHT')) stored,
  attempt_count integer not null default 0 check (attempt_count >= 0),
  next_retry_at timestamptz,
  created_at timestamptz not null default now(), -- grows strictly within one aggregate_key
  published_at timestamptz,
  locked_by text,
  locked_at timestamptz,
  lease_until timestamptz,
  claim_token uuid,
  last_error text check (length(last_error) <= 1000),
  stream_generation bigint, -- the life of the stream that stored it, and where
  stream_seq bigint,
  check (status <> 'PUBLISHED' or published_at is not null)
) with (fillfactor = 40); -- each page has room for the claims of its rows
create index outbox_events_oldest on outbox_events (created_at) where unfinished;
create index outbox_events_line on outbox_events (aggregate_key, created_at)
  where unfinished::int = 1;
create index outbox_events_published on outbox_events (published_at)
  where published_at is not null;
create index outbox_events_in_stream on outbox_events (stream_generation, stream_seq)
  where stream_seq is not null;
create index outbox_events_failed on outbox_events (event_id)
  where not unfinished and published_at is null;
create table outbox_attempts (
  event_id uuid not null,
  attempt_id bigint generated always as identity,
  outcome text not null
    check (outcome in ('RETRIED', 'GAVE_UP', 'TAKEN_OVER', 'LOST', 'SENT_BACK', 'REPLAYED', 'MENDED')),
  worker text,
  begun_at timestamptz,
  ended_at timestamptz not null default now(),
  error text,
  stream_seq bigint,
  operation_id uuid,
  primary key (event_id, attempt_id)
);
create table stream_generations (
  generation bigint primary key,
  stream text not null,
  stream_created_at text not null,
  server_id text not null,
  kept_up_to bigint not null,
  found_at timestamptz not null default now()
);

-- operations: what operators did: who, when, why, and each row with the state it was in. Append-only
-- for the service.
create table operations (
  operation_id uuid primary key,
  done_at timestamptz not null default now(),
  kind text not null check (kind in ('SEND_BACK', 'ERASE_USER')),
  layer text not null check (layer in ('account', 'user')),
  who text not null,
  reason text not null,
  items jsonb not null
);
