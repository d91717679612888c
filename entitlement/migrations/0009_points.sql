-- Points: a balance for each user and unit, every change of it, and what is reserved for later. The
-- names of the first columns are those of the design note that this follows.

-- point_root: the balance of a user in one unit. version counts its transactions.
create table point_root (
  user_id text collate "C" not null check (length(user_id) between 1 and 255),
  unit text collate "C" not null check (unit ~ '^[a-z0-9._-]{1,64}$'),
  balance bigint not null check (balance between 0 and 9007199254740991),
  version bigint not null check (version >= 1),
  updated_at timestamptz not null,
  last_hash bytea not null, -- of the audit row of the last transaction, which has the time updated_at
  primary key (user_id, unit)
) with (fillfactor = 90); -- each page has room, so that a transaction need not touch the index

-- point_transactions: every change of a balance, for ever. The key decides that each happens once.
create table point_transactions (
  id uuid primary key, -- also the id of the event and of the audit row
  idempotency_key text collate "C" not null unique check (length(idempotency_key) between 1 and 600),
  user_id text collate "C" not null,
  unit text collate "C" not null,
  kind text not null check (kind in ('GRANT', 'SPEND')),
  point_amount bigint not null check (case kind when 'GRANT' then point_amount > 0 else point_amount < 0 end),
  balance_after bigint not null check (balance_after between 0 and 9007199254740991),
  version bigint not null check (version >= 1),
  source text not null,
  source_id text not null,
  reservation_id uuid,
  created_at timestamptz not null, -- grows strictly within one user and unit
  unique (user_id, unit, version)
);
create index point_transactions_of_user on point_transactions (user_id, created_at, id);

-- point_reservations: a change of points or of a right that is accepted now and carried out later.
create table point_reservations (
  id uuid primary key,
  kind text not null check (kind in ('POINTS', 'GRANT', 'REVOKE')),
  caller text collate "C" not null,
  idempotency_key text collate "C" not null check (length(idempotency_key) between 1 and 255),
  user_id text collate "C" not null check (length(user_id) between 1 and 255),
  unit text collate "C",
  point_amount bigint check (point_amount between 1 and 9007199254740991),
  stock_keeping_unit text collate "C",
  source text, -- as the caller gave it; a reservation of points may have none
  source_id text,
  execute_at timestamptz not null,
  trace_id text not null,
  traceparent text,
  status text not null default 'PENDING'
    check (status in ('PENDING', 'PROCESSING', 'DONE', 'FAILED', 'CANCELLED')),
  -- No index depends on status, so a claim can update a row without touching any index.
  unfinished boolean not null generated always as (status in ('PENDING', 'PROCESSING')) stored,
  -- Changes of one right keep the order of their times, and at one time that of their requests.
  -- Every reservation of points has a key of its own: points may be added in any order.
  aggregate_key text collate "C" not null,
  position text collate "C" not null,
  attempt_count integer not null default 0 check (attempt_count >= 0),
  next_retry_at timestamptz,
  due_at timestamptz not null generated always as (coalesce(next_retry_at, execute_at)) stored,
  locked_by text,
  locked_at timestamptz,
  lease_until timestamptz,
  claim_token uuid,
  last_error text check (length(last_error) <= 1000),
  transaction_id uuid, -- of the points that were added
  outcome json, -- status and body of the answer to the change of a right
  created_at timestamptz not null,
  updated_at timestamptz not null, -- when it was accepted, claimed, done or cancelled
  done_at timestamptz, -- when it was done or cancelled
  unique (caller, idempotency_key),
  check (case kind when 'POINTS' then unit is not null and point_amount is not null
    else stock_keeping_unit is not null and source is not null and source_id is not null end),
  check (status not in ('DONE', 'CANCELLED') or done_at is not null),
  check (status <> 'DONE' or (case kind when 'POINTS' then transaction_id is not null else outcome is not null end))
) with (fillfactor = 60); -- each page has room for the claims of its rows
create index point_reservations_due on point_reservations (due_at) where unfinished;
create index point_reservations_line on point_reservations (aggregate_key, position)
  where unfinished::int = 1;
create index point_reservations_of_user on point_reservations (user_id, execute_at, id);
create index point_reservations_done on point_reservations (done_at) where done_at is not null;
create index point_reservations_failed on point_reservations (id)
  where not unfinished and done_at is null;

-- reservation_attempts: what happened to a reservation, except success. Deleted with the reservation.
create table reservation_attempts (
  id uuid not null,
  attempt_id bigint generated always as identity,
  outcome text not null check (outcome in ('RETRIED', 'GAVE_UP', 'TAKEN_OVER', 'SENT_BACK')),
  worker text,
  begun_at timestamptz,
  ended_at timestamptz not null default now(),
  error text,
  operation_id uuid,
  primary key (id, attempt_id)
);

-- The audit of points is in the table of the audit, with stock_keeping_unit `points:<unit>`.
alter table entitlement_audit drop constraint entitlement_audit_action_check;
alter table entitlement_audit add constraint entitlement_audit_action_known
  check (action in ('GRANT', 'REVOKE', 'POINTS_ADD', 'POINTS_TAKE')) not valid;

alter table operations drop constraint operations_layer_known;
alter table operations add constraint operations_layer_known
  check (layer in ('outbox', 'user', 'reservation')) not valid;

-- The same as pointsKeyOf in proto/points/aggregate_key.ts. The key of a right has one colon.
create function points_key_of(user_id text, unit text) returns text
language sql immutable parallel safe as $$
  select 'points:' || replace(replace(user_id, '%', '%25'), ':', '%3A') || ':' || unit
$$;
revoke execute on function points_key_of(text, text) from public;

-- Seals the rows of a chain: gives each row its hash, which covers the hash of the row before it. The
-- first row of a window follows the row that has the hash `follows`. See docs/audit.md.
create function seal_next(hash bytea, follows bytea, digest bytea, content text[]) returns bytea
language plpgsql immutable as $$
begin
  return sha256(convert_to(
    to_json(array[encode(digest, 'hex'), encode(coalesce(hash, follows), 'hex')] || content)::text,
    'UTF8'));
end $$;
revoke execute on function seal_next(bytea, bytea, bytea, text[]) from public;
create aggregate chain_hash(follows bytea, digest bytea, content text[]) (
  sfunc = seal_next,
  stype = bytea
);
revoke execute on function chain_hash(bytea, bytea, text[]) from public;

-- Appends transactions of any balances, several of one balance in the order of their versions: moves
-- each balance on and seals its audit row with the row before. The service has no say in link and hash.
-- As with append_changes, it reads the time under its locks and gives it here. Of several transactions
-- of one balance, each may be a microsecond later than the one before.
create function append_points(entries json) returns void
language plpgsql security definer
set search_path = public, pg_temp set timezone = 'UTC' set datestyle = 'ISO, MDY'
set intervalstyle = 'postgres' set bytea_output = 'hex' as $$
declare
  earliest timestamptz := greatest(now(), clock_timestamp() - interval '1 minute');
  appended integer;
begin
  with asked as materialized (
    select *, 'points:' || unit as stock_keeping_unit, gen_random_uuid() as salt,
      case when point_amount > 0 then 'GRANT' else 'SPEND' end as kind,
      case when point_amount > 0 then 'POINTS_ADD' else 'POINTS_TAKE' end as action,
      jsonb_build_object('version', version, 'trace_id', trace_id, 'point_amount', point_amount,
        'balance', balance) as detail
    from json_to_recordset(entries) as entry (
      id uuid, idempotency_key text, user_id text, unit text, point_amount bigint, balance bigint,
      version bigint, source text, source_id text, reservation_id uuid, request_id text, caller text,
      trace_id text, created_at timestamptz)
  ), placed as (
    -- Beside each transaction, the one before it: of this call, or the last one of the balance.
    select asked.*, root.last_hash as follows,
      lag(asked.version, 1, coalesce(root.version, 0)) over line as previous_version,
      lag(asked.balance, 1, coalesce(root.balance, 0)) over line as previous_balance,
      lag(asked.created_at, 1, root.updated_at) over line as previous_at
    from asked
    left join point_root root
      on root.user_id = asked.user_id
      and root.unit = asked.unit
    window line as (partition by asked.user_id, asked.unit order by asked.version)
  ), sealed as (
    select *,
      chain_hash(
        follows,
        sha256(convert_to(
          to_json(array[salt::text, user_id, source_id, request_id])::text, 'UTF8')),
        array[
          to_char(previous_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
          id::text,
          to_char(created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
          stock_keeping_unit, action, source, caller, detail::text
        ]) over line as hash
    from placed
    where version = previous_version + 1
      and balance = previous_balance + point_amount
      and created_at > coalesce(previous_at, '-infinity')
      and created_at >= earliest
      and created_at <= greatest(clock_timestamp(), previous_at + interval '1 microsecond')
    window line as (partition by user_id, unit order by version)
  ), entry as materialized (
    select *, lag(hash, 1, follows) over line as previous_hash
    from sealed
    window line as (partition by user_id, unit order by version)
  ), stored as (
    -- Nobody else can have written one of these versions or keys, also after waiting for somebody.
    insert into point_transactions
      (id, idempotency_key, user_id, unit, kind, point_amount, balance_after, version, source,
       source_id, reservation_id, created_at)
    select id, idempotency_key, user_id, unit, kind, point_amount, balance, version, source,
      source_id, reservation_id, created_at
    from entry
    returning 1
  ), moved as (
    insert into point_root as root (user_id, unit, balance, version, updated_at, last_hash)
    select distinct on (user_id, unit) user_id, unit, balance, version, created_at, hash
    from entry
    order by user_id, unit, version desc
    on conflict (user_id, unit) do update set
      balance = excluded.balance,
      version = excluded.version,
      updated_at = excluded.updated_at,
      last_hash = excluded.last_hash
  ), audited as (
    insert into entitlement_audit
      (audit_id, occurred_at, user_id, stock_keeping_unit, action, source, source_id, request_id,
       caller, detail, salt, previous_hash, previous_at, hash)
    select id, created_at, user_id, stock_keeping_unit, action, source, source_id, request_id,
      caller, detail, salt, previous_hash, previous_at, hash
    from entry
  )
  select count(*) into appended from stored;
  if appended <> json_array_length(entries) then
    raise exception 'a transaction does not follow the one before it, or is not of this moment';
  end if;
end $$;
revoke execute on function append_points(json) from public;

-- erased_keys: the keys of erased transactions and reservations, as SHA-256, so that a repeated request
-- does not bring a person back. Nothing here says whose key it was.
create table erased_keys (
  digest bytea primary key
);

-- Erases a person from balances, transactions and reservations; returns how many rows of each.
-- The keys are replaced as well, because they often contain the id of a purchase. No caller can have a
-- key like the new ones.
create function erase_points(operation uuid, person text) returns json
language plpgsql security definer
set search_path = public, pg_temp set timezone = 'UTC' set datestyle = 'ISO, MDY'
set intervalstyle = 'postgres' set bytea_output = 'hex' as $$
declare
  pseudonym text := 'erased-' || operation;
  roots integer;
  units text[];
  transactions integer;
  reservations integer;
begin
  perform check_erasure(operation, person);
  -- A balance in another unit may begin meanwhile. Its transactions stay with it.
  with erased as (
    update point_root
    set user_id = pseudonym
    where user_id = person
    returning unit
  )
  select count(*), array_agg(unit) into roots, units
  from erased;

  insert into erased_keys (digest)
  select sha256(convert_to(key, 'UTF8'))
  from (
    select idempotency_key
    from point_transactions
    where user_id = person
      and unit = any(units)
    union
    select case when caller <> '' then caller || ' ' else '' end || idempotency_key
    from point_reservations
    where user_id = person
  ) as used (key)
  order by 1
  on conflict (digest) do nothing;

  update point_transactions
  set user_id = pseudonym, source_id = 'erased', idempotency_key = 'erased: ' || id
  where user_id = person
    and unit = any(units);
  get diagnostics transactions = row_count;

  -- What is not finished is cancelled. A dead letter is, too: it could only be carried out for nobody.
  update point_reservations
  set user_id = pseudonym, source_id = 'erased', idempotency_key = 'erased: ' || id, last_error = null,
    aggregate_key = case kind
      when 'POINTS' then aggregate_key -- one of its own
      else aggregate_key_of(pseudonym, stock_keeping_unit) end,
    outcome = jsonb_set(outcome::jsonb, '{body,user_id}', to_jsonb(pseudonym), false)::json,
    status = case status when 'DONE' then status else 'CANCELLED' end,
    done_at = coalesce(done_at, now()),
    updated_at = case when done_at is null then now() else updated_at end
  where user_id = person
    and status <> 'PROCESSING';
  get diagnostics reservations = row_count;
  return json_build_object('point_root', roots, 'point_transactions', transactions,
    'point_reservations', reservations);
end $$;
revoke execute on function erase_points(uuid, text) from public;
