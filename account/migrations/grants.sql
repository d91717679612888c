-- What the service's own role may do: use its tables, and nothing else. Applied after each migration.
grant usage on schema public to :service;
grant select on schema_migrations to :service;
grant select, insert, update on users to :service;
grant select, insert, update, delete on identities to :service;
grant select, insert, delete on account_roles to :service;
grant select, insert on audit_logs to :service;
grant select on audit_retention to :service;
grant execute on function delete_old_audit(integer) to :service;
grant execute on function erase_audit_reasons(uuid) to :service;
grant select, insert, update, delete on ended_sessions to :service;
grant select, insert, update, delete on outbox_events to :service;
grant select, insert, delete on outbox_attempts to :service;
grant select, insert on stream_generations to :service;
grant select, insert on operations to :service;
