-- processed_events: the events that were received. Its key decides what is a duplicate.
create table processed_events (
  event_id uuid primary key,
  processed_at timestamptz not null default now()
);
create index processed_events_by_age on processed_events using brin (processed_at);

-- notifications: one for each event, on its way to the user.
create table notifications (
  notification_id uuid primary key,
  event_id uuid not null unique,
  user_id text collate "C" not null,
  aggregate_key text collate "C" not null, -- notifications of one key are delivered by version
  version bigint not null default 0,
  type text not null,
  occurred_at timestamptz not null,
  payload_json jsonb not null,
  status text not null default 'PENDING'
    check (status in ('PENDING', 'PROCESSING', 'SENT', 'FAILED')),
  -- The indexes of the claim hang on this column and not on status: a claim leaves it as it is,
  -- so PostgreSQL can update the row without touching any index (a HOT update).
  unfinished boolean not null generated always as (status in ('PENDING', 'PROCESSING')) stored,
  attempt_count integer not null default 0 check (attempt_count >= 0),
  next_retry_at timestamptz,
  awaits_predecessor boolean not null default false,
  locked_by text,
  locked_at timestamptz,
  lease_until timestamptz,
  claim_token uuid, -- fresh with each claim; a settle must present it
  last_error text check (length(last_error) <= 1000),
  created_at timestamptz not null default now(),
  sent_at timestamptz,
  check (status <> 'SENT' or sent_at is not null)
);
create index notifications_oldest on notifications (created_at, version) where unfinished;
create index notifications_unfinished_of_key on notifications (aggregate_key, version)
  where unfinished;
create index notifications_of_key on notifications (aggregate_key, version);
create index notifications_waiting on notifications (aggregate_key, version)
  where awaits_predecessor;
create index notifications_inbox on notifications (user_id, created_at desc, notification_id desc);
create index notifications_by_age on notifications using brin (created_at);

-- notification_dlq: notifications that were given up, with what the channel said last. Written in
-- the transaction that makes the notification FAILED.
create table notification_dlq (
  dlq_id bigint generated always as identity primary key,
  notification_id uuid not null unique,
  event_id uuid not null,
  payload_json jsonb not null,
  error_message text not null,
  created_at timestamptz not null default now()
);

-- notification_nats_dlq: messages that JetStream will not deliver any more, each with a copy,
-- because the stream itself drops them one day. The advisory's own id tells a repeated advisory
-- from one about a sequence that a recreated stream has used again.
create table notification_nats_dlq (
  dlq_id bigint generated always as identity primary key,
  advisory_id text not null unique,
  kind text not null check (kind in ('MAX_DELIVERIES', 'MSG_TERMINATED')),
  stream text not null,
  consumer text not null,
  stream_seq bigint not null,
  deliveries bigint,
  reason text,
  advised_at timestamptz not null,
  message_subject text,
  message_headers jsonb,
  message_body bytea,
  message_stored_at timestamptz,
  created_at timestamptz not null default now()
);
