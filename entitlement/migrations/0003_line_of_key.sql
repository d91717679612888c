-- Without a transaction, so that the service goes on writing.
--
-- The rows of one key stand in line. The condition tells the same as `unfinished`, but the planner
-- does not know that: so it can't look a key up in the index of the oldest unfinished rows. Among many
-- finished rows both indexes look empty to it, and a plan that took the wrong one would read all that
-- waits for each row that it claims.
drop index concurrently if exists outbox_events_line;
create index concurrently outbox_events_line on outbox_events (aggregate_key, created_at)
  where unfinished::int = 1;
-- No release was made that looks keys up in the old one.
drop index concurrently if exists outbox_events_of_key;
