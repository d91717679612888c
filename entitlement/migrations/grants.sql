-- What the service's own role may do: use its tables, and nothing else. Applied after each migration.
grant usage on schema public to :service;
grant select on schema_migrations to :service;
-- Written by functions of the owner; by the service itself only while migration 0008 is being rolled out.
grant select on entitlements to :service;
grant select on entitlement_audit to :service;
grant execute on function append_changes(json) to :service;
select grant_direct_writes(:'service');
grant select, insert, update, delete on idempotency_keys to :service;
grant select, insert, update, delete on outbox_events to :service;
grant select, insert on stream_generations to :service;
-- Rows go only with their partition, or lose a person by erase_audited.
grant select on audit_retention to :service;
grant execute on function aggregate_key_of(text, text) to :service;
grant execute on function make_audit_partitions(integer) to :service;
grant execute on function drop_audit_partitions(integer) to :service;
grant execute on function erase_audited(uuid, text, uuid[], timestamptz[]) to :service;
grant execute on function erase_entitlements(uuid, text) to :service;
grant select, insert, delete on outbox_attempts to :service;
grant select, insert on operations to :service;
grant select, update on reconciliation to :service;
grant select, insert, update, delete on unreceived_events to :service;
-- Balances and their transactions are written by functions of the owner only.
grant select on point_root to :service;
grant select on point_transactions to :service;
grant select on erased_keys to :service;
grant execute on function append_points(json) to :service;
grant execute on function erase_points(uuid, text) to :service;
grant execute on function points_key_of(text, text) to :service;
grant select, insert, update, delete on point_reservations to :service;
grant select, insert, delete on reservation_attempts to :service;
