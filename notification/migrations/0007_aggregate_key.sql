-- Until now a key was made as user:item, so that user `a` with item `b:c` and user `a:b` with item `c`
-- had the same. The same as aggregateKeyOf in proto/aggregate_key.ts, for keys that are made of columns.
create function aggregate_key_of(user_id text, item text) returns text
language sql immutable parallel safe as $$
  select replace(replace(user_id, '%', '%25'), ':', '%3A') || ':'
    || replace(replace(item, '%', '%25'), ':', '%3A')
$$;
revoke execute on function aggregate_key_of(text, text) from public;

-- Replicas of the release before go on writing keys of the old form for a while. Their rows get the
-- key of the new form, and no lease: the writer has looked for earlier rows under the old key only.
-- Goes with a later migration, when that release is gone.
create function make_key_anew() returns trigger
language plpgsql set search_path = public, pg_temp as $$
declare
  made text := aggregate_key_of(
    new.payload_json->>'user_id', new.payload_json->>'stock_keeping_unit');
begin
  if made <> new.aggregate_key then
    new.aggregate_key := made;
    if new.status = 'PROCESSING' then
      new.status := 'PENDING';
      new.locked_by := null;
      new.locked_at := null;
      new.lease_until := null;
      new.claim_token := null;
    end if;
  end if;
  -- What was stored under the old key and is finished keeps it. A version need not wait for that.
  if new.awaits_predecessor and exists (
    select from notifications predecessor
    where predecessor.aggregate_key in (
        made, (new.payload_json->>'user_id') || ':' || (new.payload_json->>'stock_keeping_unit'))
      and predecessor.user_id = new.user_id
      and predecessor.version = new.version - 1
  ) then
    new.awaits_predecessor := false;
    new.next_retry_at := null;
  end if;
  return new;
end $$;
revoke execute on function make_key_anew() from public;
create trigger key_of_release_before before insert on notifications for each row
when (new.aggregate_key like '%:%:%' or new.aggregate_key like '%\%%')
execute function make_key_anew();

-- After the trigger, which has waited for all that were writing: so no row is left out. Only what is
-- unfinished; a finished row gets its new key when it is put back.
update notifications
set aggregate_key =
  aggregate_key_of(payload_json->>'user_id', payload_json->>'stock_keeping_unit')
where unfinished
  and (aggregate_key like '%:%:%' or aggregate_key like '%\%%')
  and aggregate_key_of(payload_json->>'user_id', payload_json->>'stock_keeping_unit')
    <> aggregate_key;
