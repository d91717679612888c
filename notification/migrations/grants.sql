-- What the service's own role may do: use its tables, and nothing else. Applied after each migration.
grant usage on schema public to :service;
grant execute on function aggregate_key_of(text, text) to :service;
grant select on schema_migrations to :service;
-- PostgreSQL asks for the right to update before it locks a row, as the clean-up does.
grant select, insert, update, delete on processed_events to :service;
grant select, insert, update, delete on notifications to :service;
-- A dead letter that is sent back is deleted, with its content in the operation's record.
-- When a user is erased, what it said of them is replaced, and captured copies are dropped.
grant select, insert, update (payload_json), delete on notification_dlq to :service;
grant select, insert, update (operation_id, message_headers, message_body)
  on notification_nats_dlq to :service;
grant select, insert, delete on delivery_attempts to :service;
grant select, insert on operations to :service;
grant select, insert, update, delete on idempotency_keys to :service;
grant select, insert, update, delete on endpoints to :service;
grant select, insert, update (expires_at), delete on endpoint_secrets to :service;
grant select, insert, update, delete on outbox_orders to :service;
grant select, insert, update, delete on idempo_ledger to :service;
grant select, insert, delete on order_attempts to :service;
grant update (request_headers, response_headers, response_body, error) on order_attempts to :service;
