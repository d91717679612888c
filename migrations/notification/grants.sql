-- What the service's own role may do: use its tables, and nothing else. Applied after each migration.
grant usage on schema public to :service;
grant select on schema_migrations to :service;
-- PostgreSQL asks for the right to update before it locks a row, as the clean-up does.
grant select, insert, update, delete on processed_events to :service;
grant select, insert, update, delete on notifications to :service;
grant select, insert on notification_dlq to :service;
grant select, insert on notification_nats_dlq to :service;
