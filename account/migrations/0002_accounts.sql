-- users: one row for each person, under a random id. version counts the changes of the account.
-- Sessions that began in an earlier session_epoch have ended.
create table users (
  user_id uuid primary key,
  display_name text check (length(display_name) between 1 and 255),
  locale text check (length(locale) between 1 and 255),
  picture text check (length(picture) between 1 and 2048),
  status text not null default 'ACTIVE' check (status in ('ACTIVE', 'SUSPENDED', 'DELETED')),
  version bigint not null default 1 check (version >= 1),
  session_epoch bigint not null default 1 check (session_epoch >= 1),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  last_event_at timestamptz not null default now() -- grows strictly, as created_at in the outbox must
) with (fillfactor = 80);

-- identities: by which logins a person is known. The key decides which of several first logins at
-- the same time registers the user.
create table identities (
  provider text collate "C" not null check (length(provider) between 1 and 255),
  subject text collate "C" not null check (length(subject) between 1 and 255),
  user_id uuid not null,
  email text check (length(email) between 1 and 320),
  email_verified boolean,
  created_at timestamptz not null default now(),
  last_login_at timestamptz not null default now(),
  primary key (provider, subject)
) with (fillfactor = 80);
create index identities_of_user on identities (user_id);
create index identities_by_email on identities (lower(email));

create table account_roles (
  user_id uuid not null,
  role text collate "C" not null check (role in ('USER', 'SUPPORT', 'ADMIN')),
  granted_at timestamptz not null default now(),
  primary key (user_id, role)
);
create index account_roles_admins on account_roles (user_id) where role = 'ADMIN';

-- What an account is at the moment of the call. A volatile function reads with a snapshot of its own, so
-- a statement that has waited for a lock gets the state of that moment, with the roles of its version.
create function newest_state(id uuid)
returns table (status text, version bigint, session_epoch bigint, roles text[])
language sql volatile as $$
  select users.status, users.version, users.session_epoch, array(
      select account_roles.role
      from account_roles
      where account_roles.user_id = users.user_id
      order by array_position(array['USER', 'SUPPORT', 'ADMIN'], account_roles.role)
    )
  from users
  where users.user_id = id
$$;

-- audit_logs: each change of an account and each end of sessions. Append-only for the service.
create table audit_logs (
  audit_id uuid primary key, -- of its event
  occurred_at timestamptz not null,
  user_id uuid not null,
  action text not null check (action in (
    'REGISTER', 'UPDATE', 'SUSPEND', 'RESUME', 'CHANGE_ROLES', 'END_SESSIONS', 'END_SESSION', 'ERASE')),
  actor text collate "C" not null, -- a user_id, or the name of a caller
  reason text,
  version bigint not null,
  detail jsonb not null default '{}',
  trace_id text not null
);
create index audit_logs_of_user on audit_logs (user_id, occurred_at, audit_id);
create index audit_logs_by_age on audit_logs (occurred_at);

-- audit_retention: one row, what the service may not change: for how many days it has to keep the audit
-- at least.
create table audit_retention (
  one_row boolean primary key default true check (one_row),
  keep_days integer not null default 400 check (keep_days >= 1) -- as `deno task migrate` was told
);
insert into audit_retention default values;

-- Deletes at most 1000 rows that are older than the owner of the database wants, and than `days`.
-- Returns how many.
create function delete_old_audit(days integer) returns integer
language plpgsql security definer set search_path = public, pg_temp as $$
declare
  deleted integer;
begin
  delete from audit_logs
  where audit_id in (
    select audit_id
    from audit_logs
    where occurred_at < now() - make_interval(days => greatest(days, (select keep_days from audit_retention)))
    order by occurred_at
    limit 1000
    for update skip locked -- so that several replicas share the work
  );
  get diagnostics deleted = row_count;
  return deleted;
end $$;
revoke execute on function delete_old_audit(integer) from public;

-- Erases the reasons in the audit of a user who was erased: they may say something of the person.
create function erase_audit_reasons(erased uuid) returns void
language sql security definer set search_path = public, pg_temp as $$
  update audit_logs
  set reason = 'erased'
  where user_id = erased
    and reason is not null
    and exists (select from users where user_id = erased and status = 'DELETED');
$$;
revoke execute on function erase_audit_reasons(uuid) from public;

-- ended_sessions: those that ended alone, until they would have expired.
create table ended_sessions (
  session_id uuid primary key,
  user_id uuid not null,
  ended_at timestamptz not null,
  expires_at timestamptz not null
);
create index ended_sessions_by_end on ended_sessions (ended_at, session_id);
create index ended_sessions_by_expiry on ended_sessions (expires_at);
create index ended_sessions_of_user on ended_sessions (user_id);
