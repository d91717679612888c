-- delivery_attempts: what befell a notification besides its success: each send that failed, each
-- lease that ran out, each time it was sent back. A success stands in the notification's own row, so
-- one without trouble has no row here. They are deleted with their notification.
create table delivery_attempts (
  notification_id uuid not null,
  attempt_id bigint generated always as identity,
  outcome text not null check (outcome in ('RETRIED', 'GAVE_UP', 'TAKEN_OVER', 'SENT_BACK')),
  worker text,
  begun_at timestamptz,
  ended_at timestamptz not null default now(),
  error text,
  operation_id uuid,
  primary key (notification_id, attempt_id)
);

-- operations: what operators did to dead letters: who, when, why, and each of them as it was.
-- Append-only for the service.
create table operations (
  operation_id uuid primary key,
  done_at timestamptz not null default now(),
  kind text not null check (kind = 'SEND_BACK'),
  layer text not null check (layer in ('advisory', 'delivery')),
  who text not null,
  reason text not null,
  items jsonb not null
);

-- A captured message that was received after all keeps its row, with the operation that did it.
alter table notification_nats_dlq add column operation_id uuid;
