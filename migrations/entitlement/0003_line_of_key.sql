-- The rows of one key stand in line. This tells the same as `unfinished`, but the planner does not know
-- that: so it can't look a key up in the index of the oldest unfinished rows. Among many finished
-- rows both indexes look empty to it, and a plan that took the wrong one would read all that waits
-- for each row that it claims.
alter table outbox_events
  add column in_line boolean not null
    generated always as (status in ('PENDING', 'IN_FLIGHT')) stored;
drop index outbox_events_of_key;
create index outbox_events_of_key on outbox_events (aggregate_key, created_at) where in_line;
