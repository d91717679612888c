-- Changes are appended by a function of the owner, and the service may write neither entitlements nor
-- their audit by itself. See docs/audit.md.

-- Replicas of the release before write both tables themselves. They may go on until the update is over,
-- which is a day after this; where there is nothing yet, there is no release before.
alter table audit_retention add column direct_until timestamptz not null default '-infinity';
update audit_retention set direct_until = now() + interval '24 hours'
where exists (select from entitlements);

-- Appends changes that happen at the same time, of different entitlements: moves each entitlement on by
-- one version and seals its audit row with the row before. The service has no say in version, link and
-- hash. The time is in the answer and in the event, so the service reads it under its locks and gives
-- it here: it must lie within this transaction, and be later than that of the change before.
create function append_changes(changes json) returns void
language plpgsql security definer
set search_path = public, pg_temp set timezone = 'UTC' set datestyle = 'ISO, MDY'
set intervalstyle = 'postgres' set bytea_output = 'hex' as $$
declare
  earliest timestamptz := greatest(now(), clock_timestamp() - interval '1 minute');
  appended integer;
begin
  with change as materialized (
    select *, sha256(convert_to(to_json(array[
        encode(sha256(convert_to(
          to_json(array[salt::text, user_id, source_id, request_id])::text, 'UTF8')), 'hex'),
        encode(previous_hash, 'hex'),
        to_char(previous_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
        audit_id::text,
        to_char(occurred_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
        stock_keeping_unit, action, source, caller, detail::text])::text, 'UTF8')) as hash
    from (
      select asked.*, head.last_hash as previous_hash, head.hashed_at as previous_at,
        gen_random_uuid() as salt,
        jsonb_build_object('version', asked.version, 'trace_id', asked.trace_id) as detail
      from json_to_recordset(changes) as asked (
        audit_id uuid, occurred_at timestamptz, user_id text, stock_keeping_unit text, action text,
        source text, source_id text, request_id text, caller text, version bigint, trace_id text)
      left join entitlements head
        on head.user_id = asked.user_id
        and head.stock_keeping_unit = asked.stock_keeping_unit
      where asked.version = coalesce(head.version, 0) + 1
        and asked.action <> case head.status when 'ACTIVE' then 'GRANT' when 'REVOKED' then 'REVOKE' else '' end
        and asked.occurred_at > coalesce(head.updated_at, '-infinity')
        and asked.occurred_at >= earliest
        and (asked.occurred_at <= clock_timestamp()
          or asked.occurred_at = head.updated_at + interval '1 microsecond')
      offset 0 -- so that none of this is worked out twice
    ) as entry
  ), stored as (
    insert into entitlements as entitlement
      (user_id, stock_keeping_unit, status, granted_at, revoked_at, source, source_id,
       version, updated_at, last_hash, hashed_at)
    select user_id, stock_keeping_unit, case action when 'GRANT' then 'ACTIVE' else 'REVOKED' end,
      case action when 'GRANT' then occurred_at end, case action when 'REVOKE' then occurred_at end,
      source, source_id, version, occurred_at, hash, occurred_at
    from change
    on conflict (user_id, stock_keeping_unit) do update set
      status = excluded.status,
      granted_at = coalesce(excluded.granted_at, entitlement.granted_at),
      revoked_at = coalesce(excluded.revoked_at, entitlement.revoked_at),
      source = excluded.source,
      source_id = excluded.source_id,
      version = excluded.version,
      updated_at = excluded.updated_at,
      last_hash = excluded.last_hash,
      hashed_at = excluded.hashed_at
    where entitlement.version = excluded.version - 1 -- also after waiting for somebody else
    returning 1
  ), audited as (
    insert into entitlement_audit
      (audit_id, occurred_at, user_id, stock_keeping_unit, action, source, source_id, request_id,
       caller, detail, salt, previous_hash, previous_at, hash)
    select audit_id, occurred_at, user_id, stock_keeping_unit, action, source, source_id,
      request_id, caller, detail, salt, previous_hash, previous_at, hash
    from change
  )
  select count(*) into appended from stored;
  if appended <> json_array_length(changes) then
    raise exception 'a change does not follow the one before it, or is not of this moment';
  end if;
end $$;
revoke execute on function append_changes(json) from public;

-- What a role writes by itself that may not delete, which is any but the owner. For as long as the
-- release before is being replaced, and not with a time of its own choice.
create function check_direct_write() returns trigger
language plpgsql security definer
set search_path = public, pg_temp set timezone = 'UTC' set datestyle = 'ISO, MDY'
set intervalstyle = 'postgres' set bytea_output = 'hex' as $$
begin
  if clock_timestamp() > (select direct_until from audit_retention) then
    raise insufficient_privilege using message = 'changes are appended by append_changes';
  end if;
  if tg_argv[0] = 'entitlements' then
    return new;
  end if;
  if new.occurred_at < greatest(now(), clock_timestamp() - interval '1 minute')
    or new.occurred_at > clock_timestamp() and not exists (
      select from entitlements head
      where head.user_id = new.user_id
        and head.stock_keeping_unit = new.stock_keeping_unit
        and head.updated_at >= new.occurred_at - interval '1 microsecond')
  then
    raise insufficient_privilege using message = 'an audit row must be of this moment';
  end if;
  return new;
end $$;
revoke execute on function check_direct_write() from public;

create trigger direct_write before insert or update on entitlements for each row
when (not has_table_privilege('entitlements'::regclass, 'delete'))
execute function check_direct_write('entitlements');

create trigger direct_write before insert on entitlement_audit for each row
when (not has_table_privilege('entitlement_audit'::regclass, 'delete'))
execute function check_direct_write('entitlement_audit');

-- Called by `deno task migrate`, with the service's role. The next release can do without.
create function grant_direct_writes(service text) returns void
language plpgsql
set search_path = public, pg_temp set timezone = 'UTC' set datestyle = 'ISO, MDY'
set intervalstyle = 'postgres' set bytea_output = 'hex' as $$
begin
  if clock_timestamp() > (select direct_until from audit_retention) then
    return;
  end if;
  execute format('grant insert, update on entitlements to %I', service);
  execute format('grant insert on entitlement_audit to %I', service);
end $$;
revoke execute on function grant_direct_writes(text) from public;

-- As before, but what was erased keeps its digest: it can't be made again.
create or replace function erase_audited(operation uuid, person text, ids uuid[], times timestamptz[])
returns integer
language plpgsql security definer
set search_path = public, pg_temp set timezone = 'UTC' set datestyle = 'ISO, MDY'
set intervalstyle = 'postgres' set bytea_output = 'hex' as $$
declare
  changed integer;
begin
  perform check_erasure(operation, person);
  update entitlement_audit audit
  set user_id = 'erased-' || operation, source_id = 'erased', request_id = 'erased', salt = null,
    erased = case when audit.hash is not null then sha256(convert_to(
      to_json(array[audit.salt::text, audit.user_id, audit.source_id, audit.request_id])::text,
      'UTF8')) end
  from unnest(ids, times) as wanted (audit_id, occurred_at)
  where audit.occurred_at = wanted.occurred_at
    and audit.audit_id = wanted.audit_id
    and audit.user_id = person
    and audit.erased is null;
  get diagnostics changed = row_count;
  return changed;
end $$;

-- The same of entitlements; returns how many.
create function erase_entitlements(operation uuid, person text) returns integer
language plpgsql security definer
set search_path = public, pg_temp set timezone = 'UTC' set datestyle = 'ISO, MDY'
set intervalstyle = 'postgres' set bytea_output = 'hex' as $$
declare
  changed integer;
begin
  perform check_erasure(operation, person);
  update entitlements set user_id = 'erased-' || operation, source_id = 'erased'
  where user_id = person;
  get diagnostics changed = row_count;
  return changed;
end $$;
revoke execute on function erase_entitlements(uuid, text) from public;

create function check_erasure(operation uuid, person text) returns void
language plpgsql
set search_path = public, pg_temp set timezone = 'UTC' set datestyle = 'ISO, MDY'
set intervalstyle = 'postgres' set bytea_output = 'hex' as $$
begin
  if not exists (
    select from operations where operation_id = operation and kind = 'ERASE_USER'
  ) then
    raise exception 'no erasure has the operation_id %', operation;
  end if;
  if person ~ '^erased-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then
    raise exception 'a pseudonym is nobody who could be erased';
  end if;
end $$;
revoke execute on function check_erasure(uuid, text) from public;

-- A role may change its own settings, and with them how a function reads and writes times.
alter function make_audit_partitions(integer) set timezone = 'UTC';
alter function make_audit_partitions(integer) set datestyle = 'ISO, MDY';
alter function make_audit_partitions(integer) set intervalstyle = 'postgres';
alter function make_audit_partitions(integer) set bytea_output = 'hex';
alter function drop_audit_partitions(integer) set timezone = 'UTC';
alter function drop_audit_partitions(integer) set datestyle = 'ISO, MDY';
alter function drop_audit_partitions(integer) set intervalstyle = 'postgres';
alter function drop_audit_partitions(integer) set bytea_output = 'hex';
