-- An Idempotency-Key belongs to its caller. Of a named one it is stored after the name and a space,
-- which no key contains, so nothing that is stored has to change. Not validated: older rows are
-- shorter still.
alter table idempotency_keys drop constraint idempotency_keys_idem_key_check;
alter table idempotency_keys add constraint idempotency_keys_idem_key_length
  check (length(idem_key) between 1 and 600) not valid;

-- Each audit row seals its content with that of the row before it of the same entitlement, and the
-- entitlement keeps where its chain ends. All are null in rows that were written before this, or by
-- a release before this. See docs/audit.md.
alter table entitlement_audit
  add column caller text, -- whose credential it was; '' where none was asked for
  add column salt uuid, -- makes the digest of what can be erased impossible to guess; erased with it
  add column previous_hash bytea,
  add column previous_at timestamptz, -- occurred_at of the row that has it
  add column hash bytea,
  add column erased bytea; -- the digest of what was erased, in its place
alter table entitlements
  add column last_hash bytea,
  add column hashed_at timestamptz; -- occurred_at of the row that has it

-- audit_retention: one row, what the service may not change: how many months of audit it has to keep
-- at least, and until when it has dropped them.
create table audit_retention (
  one_row boolean primary key default true check (one_row),
  keep_months integer not null default 13 check (keep_months >= 1), -- as `deno task migrate` was told
  dropped_until timestamptz not null default '-infinity'
);
insert into audit_retention default values;

-- As before, but a caller that went astray can't fill the catalogue.
create or replace function make_audit_partitions(months_ahead integer) returns integer
language plpgsql security definer set search_path = public, pg_temp as $$
declare
  this_month timestamp := date_trunc('month', now() at time zone 'UTC');
  month timestamp;
  partition text;
  made integer := 0;
begin
  if months_ahead > 24 then
    raise exception 'months_ahead must be at most 24, not %', months_ahead;
  end if;
  perform pg_advisory_xact_lock(hashtextextended('make_audit_partitions', 0));
  for month in select generate_series(
    this_month, this_month + make_interval(months => months_ahead), interval '1 month')
  loop
    partition := 'entitlement_audit_' || to_char(month, 'YYYY_MM');
    continue when to_regclass(partition) is not null;
    -- Rows of that month that fell into the net are moved: PostgreSQL refuses the new partition
    -- as long as the default one holds rows that belong to it.
    lock table entitlement_audit_default in access exclusive mode;
    execute format('create table %I (like entitlement_audit including all)', partition);
    execute format(
      'with stray as (
         delete from entitlement_audit_default where occurred_at >= %1$L and occurred_at < %2$L
         returning *)
       insert into %3$I select * from stray',
      month at time zone 'UTC', (month + interval '1 month') at time zone 'UTC', partition);
    execute format('alter table entitlement_audit attach partition %I for values from (%L) to (%L)',
      partition, month at time zone 'UTC', (month + interval '1 month') at time zone 'UTC');
    made := made + 1;
  end loop;
  return made;
end $$;

-- As before, but it keeps what the owner said at least, and remembers what is gone.
create or replace function drop_audit_partitions(keep_months integer) returns integer
language plpgsql security definer set search_path = public, pg_temp set lock_timeout = '2s' as $$
declare
  kept integer := greatest(keep_months, (select r.keep_months from audit_retention r));
  oldest_kept timestamp := date_trunc('month', now() at time zone 'UTC') - make_interval(months => kept);
  partition text;
  dropped integer := 0;
begin
  if keep_months < 1 then
    raise exception 'keep_months must be at least 1, not %', keep_months;
  end if;
  for partition in
    select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = 'entitlement_audit'::regclass
      and c.relname ~ '^entitlement_audit_[0-9]{4}_[0-9]{2}$'
      and c.relname < 'entitlement_audit_' || to_char(oldest_kept, 'YYYY_MM') collate "C"
    order by c.relname
  loop
    execute format('drop table if exists %I', partition);
    update audit_retention
    set dropped_until = greatest(
      dropped_until,
      (to_date(right(partition, 7), 'YYYY_MM') + interval '1 month') at time zone 'UTC');
    dropped := dropped + 1;
  end loop;
  return dropped;
end $$;

-- Takes from the audit what leads to a person, and nothing else: the service names the rows and an
-- operation that is on record, and has no say in what they become. The digest in `erased` is the one
-- that went into the row's hash, so chains hold as before. Returns how many rows it changed.
create function erase_audited(operation uuid, person text, ids uuid[], times timestamptz[])
returns integer
language plpgsql security definer set search_path = public, pg_temp as $$
declare
  changed integer;
begin
  if not exists (
    select from operations where operation_id = operation and kind = 'ERASE_USER'
  ) then
    raise exception 'no erasure has the operation_id %', operation;
  end if;
  update entitlement_audit audit
  set user_id = 'erased-' || operation, source_id = 'erased', request_id = 'erased', salt = null,
    erased = case when audit.hash is not null then sha256(convert_to(
      to_json(array[audit.salt::text, audit.user_id, audit.source_id, audit.request_id])::text,
      'UTF8')) end
  from unnest(ids, times) as wanted (audit_id, occurred_at)
  where audit.occurred_at = wanted.occurred_at
    and audit.audit_id = wanted.audit_id
    and audit.user_id = person;
  get diagnostics changed = row_count;
  return changed;
end $$;
revoke execute on function erase_audited(uuid, text, uuid[], timestamptz[]) from public;

-- An erasure is an operation, too.
alter table operations drop constraint operations_kind_check;
alter table operations add constraint operations_kind_known
  check (kind in ('SEND_BACK', 'REPLAY', 'MEND', 'ERASE_USER')) not valid;
alter table operations drop constraint operations_layer_check;
alter table operations add constraint operations_layer_known
  check (layer in ('outbox', 'user')) not valid;
