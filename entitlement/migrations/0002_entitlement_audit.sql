-- entitlement_audit: who changed what, when and why; append-only, one partition a month.
create table entitlement_audit (
  audit_id uuid not null,
  occurred_at timestamptz not null,
  user_id text collate "C" not null,
  stock_keeping_unit text collate "C" not null,
  action text not null check (action in ('GRANT', 'REVOKE')),
  source text not null,
  source_id text not null,
  request_id text not null,
  detail jsonb not null,
  primary key (occurred_at, audit_id)
) partition by range (occurred_at);

-- The safety net: a change must not fail because nobody has made next month's partition.
create table entitlement_audit_default partition of entitlement_audit default;

-- Makes the partitions of this month and the coming ones; returns how many were missing.
-- Runs with the owner's rights, because the service itself may create nothing.
create function make_audit_partitions(months_ahead integer) returns integer
language plpgsql security definer set search_path = public, pg_temp as $$
declare
  this_month timestamp := date_trunc('month', now() at time zone 'UTC');
  month timestamp;
  partition text;
  made integer := 0;
begin
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

-- Drops the partitions of all months but this one, the keep_months before it, and coming ones.
create function drop_audit_partitions(keep_months integer) returns integer
language plpgsql security definer set search_path = public, pg_temp set lock_timeout = '2s' as $$
declare
  oldest_kept text := 'entitlement_audit_' || to_char(
    date_trunc('month', now() at time zone 'UTC') - make_interval(months => keep_months), 'YYYY_MM');
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
      and c.relname < oldest_kept collate "C"
  loop
    execute format('drop table if exists %I', partition);
    dropped := dropped + 1;
  end loop;
  return dropped;
end $$;

revoke execute on function make_audit_partitions(integer) from public;
revoke execute on function drop_audit_partitions(integer) from public;

select make_audit_partitions(3);
