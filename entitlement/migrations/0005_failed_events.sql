-- Without a transaction, so that changes are made and events claimed meanwhile.
--
-- What is FAILED. The condition says it by columns that a claim leaves as they are, so that claims
-- still touch no index.
drop index concurrently if exists outbox_events_failed;
create index concurrently outbox_events_failed on outbox_events (event_id)
  where not unfinished and published_at is null;
