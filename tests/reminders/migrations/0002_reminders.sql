-- reminders: what a user wants to be reminded of, and when: a queue by due time.
create table reminders (
  reminder_id uuid primary key,
  user_id text collate "C" not null,
  text text not null,
  remind_at timestamptz not null,
  fired_at timestamptz,
  aggregate_key text collate "C" not null generated always as (user_id) stored,
  status text not null default 'PENDING' check (status in ('PENDING', 'FIRING', 'FIRED', 'FAILED')),
  unfinished boolean not null generated always as (status in ('PENDING', 'FIRING')) stored,
  attempt_count integer not null default 0,
  next_retry_at timestamptz,
  due_at timestamptz not null generated always as (coalesce(next_retry_at, remind_at)) stored,
  locked_by text,
  locked_at timestamptz,
  lease_until timestamptz,
  claim_token uuid,
  last_error text
);
create index reminders_due on reminders (due_at) where unfinished;
create index reminders_line on reminders (aggregate_key, remind_at) where unfinished::int = 1;
create table reminder_attempts (
  reminder_id uuid not null,
  attempt_id bigint generated always as identity,
  outcome text not null check (outcome in ('RETRIED', 'GAVE_UP', 'TAKEN_OVER')),
  worker text,
  begun_at timestamptz,
  ended_at timestamptz not null default now(),
  error text,
  primary key (reminder_id, attempt_id)
);

-- fired_reminders: how many reminders of each user have fired, counted from the events.
create table fired_reminders (
  user_id text collate "C" primary key,
  count integer not null
);
