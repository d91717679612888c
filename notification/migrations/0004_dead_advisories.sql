-- Without a transaction, so that advisories are captured meanwhile.
--
-- Captured messages that were not received yet, and all of them by their event's id, which is the
-- message's.
drop index concurrently if exists notification_nats_dlq_dead;
create index concurrently notification_nats_dlq_dead on notification_nats_dlq (dlq_id)
  where operation_id is null;
drop index concurrently if exists notification_nats_dlq_of_event;
create index concurrently notification_nats_dlq_of_event
  on notification_nats_dlq ((message_headers->'Nats-Msg-Id'->>0));
