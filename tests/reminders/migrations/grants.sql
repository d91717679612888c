-- What the service's own role may do. Applied after each migration.
grant usage on schema public to :service;
grant select on schema_migrations to :service;
grant select, insert, update, delete on idempotency_keys, outbox_events, outbox_attempts to :service;
grant select, insert on stream_generations to :service;
grant select, insert on processed_events to :service;
grant select, insert, update on reminders, reminder_attempts, fired_reminders to :service;
