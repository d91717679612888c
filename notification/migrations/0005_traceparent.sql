-- The span under which an event was received, so that its sends go on in the same trace, also by
-- another replica. Null while no traces are written.
alter table notifications add column traceparent text;
