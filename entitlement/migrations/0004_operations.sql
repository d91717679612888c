-- outbox_attempts: what befell an event besides its success: each attempt that failed, each lease
-- that ran out, each time it was put back. A success stands in the event's own row, so an event
-- without trouble has no row here. They are deleted with their event.
create table outbox_attempts (
  event_id uuid not null,
  attempt_id bigint generated always as identity,
  outcome text not null
    check (outcome in ('RETRIED', 'GAVE_UP', 'TAKEN_OVER', 'LOST', 'SENT_BACK', 'REPLAYED', 'MENDED')),
  worker text,
  begun_at timestamptz,
  ended_at timestamptz not null default now(),
  error text,
  stream_seq bigint, -- where the stream had it until then
  operation_id uuid,
  primary key (event_id, attempt_id)
);

-- operations: what operators, and the reconciliation, did to events: who, when, why, and each event
-- with the state it was in. Append-only for the service.
create table operations (
  operation_id uuid primary key,
  done_at timestamptz not null default now(),
  kind text not null check (kind in ('SEND_BACK', 'REPLAY', 'MEND')),
  layer text not null check (layer = 'outbox'),
  who text not null,
  reason text not null,
  items jsonb not null
);

-- reconciliation: one row, how far the check has come that every event was received. Each event that
-- occurred before proven_until was received, or is in unreceived_events.
create table reconciliation (
  one_row boolean primary key default true check (one_row),
  proven_until timestamptz not null,
  checked_at timestamptz not null default now(), -- when a run last came to its end
  leased_until timestamptz -- the replica that checks has it to itself until then
);
insert into reconciliation (proven_until) values (now() - interval '1 day');

-- unreceived_events: what the check found missing at the notification service, or among its dead
-- letters, until it is received.
create table unreceived_events (
  event_id uuid primary key,
  occurred_at timestamptz not null,
  user_id text collate "C" not null,
  stock_keeping_unit text collate "C" not null,
  version bigint not null,
  state text not null check (state in ('MISSING', 'DEAD')),
  found_at timestamptz not null default now(),
  mended_at timestamptz,
  mends integer not null default 0
);
