-- The statements of the leased tables, as PostgreSQL gets them. Made by
-- deno task queue:statements from claims.ts, settlements.ts and the descriptions of the tables.

-- name: outbox_events.claim
with oldest as materialized (
  select row.ctid as place, row.aggregate_key, row.created_at as position,
    row.created_at as turn
  from outbox_events row
  where row.unfinished
    and row.created_at >=
      coalesce($1::timestamptz, now() - make_interval(secs => $2::float8 / 1000))
    and (row.next_retry_at is null or row.next_retry_at <= now())
    and (row.lease_until is null or row.lease_until <= now())
  order by created_at
  limit $3
), seen as (select * from oldest), blocked as materialized (
  select line.aggregate_key, blocking.position
  from (select aggregate_key, max(position) as last from seen group by aggregate_key) as line
  cross join lateral (
    select earlier.created_at as position
    from outbox_events earlier
    where earlier.unfinished::int = 1
      and earlier.aggregate_key = line.aggregate_key
      and earlier.created_at < line.last
      and (earlier.claim_token = any($4::uuid[])) is not true
      and earlier.ctid not in (select place from seen)
    order by earlier.created_at
    limit 1
  ) as blocking
), free as materialized (
  select place, aggregate_key, turn, nth
  from (
    select place, aggregate_key, turn, row_number() over line as nth,
      bool_or(place is null) over line as is_blocked
    from (
      select place, aggregate_key, position, turn from seen
      union all
      select null, aggregate_key, position, null from blocked
    ) as one
    window line as (partition by aggregate_key order by position)
  ) as one
  where not is_blocked
  order by turn, nth
  limit $5
), cut as (select null::timestamptz as turn),
found as materialized (
  select row.ctid as place, free.aggregate_key, free.nth, row.status = 'IN_FLIGHT' as taken_over
  from free
  join outbox_events row on row.ctid = free.place
  where (row.next_retry_at is null or row.next_retry_at <= now())
    and (row.lease_until is null or row.lease_until <= now())
  for update of row skip locked
), missing as materialized (
  select aggregate_key, nth
  from free
  where place not in (select place from found)
), claimable as (
  select place, taken_over
  from found
  where not exists (
    select from missing
    where missing.aggregate_key = found.aggregate_key
      and missing.nth < found.nth)
), claimed as (
  update outbox_events row
  set status = 'IN_FLIGHT',
    attempt_count = row.attempt_count + claimable.taken_over::int,
    locked_by = $6,
    locked_at = clock_timestamp(),
    lease_until = now() + make_interval(secs => $7::float8 / 1000),
    claim_token = $8,
    last_error = null, next_retry_at = null
  from claimable
  where row.ctid = claimable.place
  returning row.*, claimable.taken_over
), changed as (
  select event_id as id, 'The lease ran out' as error from claimed where taken_over
), recorded as (
  insert into outbox_attempts (event_id, outcome, worker, begun_at, error)
  select before.event_id, 'TAKEN_OVER', before.locked_by, before.locked_at, changed.error
  from changed
  join outbox_events before on before.event_id = changed.id
)
select event_id as id, aggregate_key, attempt_count as attempt_count, taken_over,
  event_type, payload, traceparent,
    extract(epoch from locked_at - created_at)::float8 as age_seconds,
  case when event_id is not distinct from scan.shown_with then scan.found end as scan
from (
  select json_build_object(
      'seen', oldest.count,
      'more', oldest.count >= $9 or free.count >= $10 or cut.turn is not null,
      'reached', least(
        oldest.turn, cut.turn, case when free.count >= $11 then free.turn end)::text
    ) as found,
    (select event_id from claimed limit 1) as shown_with
  from (select count(*), max(turn) as turn from oldest) as oldest,
    (select count(*), max(turn) as turn from free) as free,
    cut
) as scan
left join claimed on true
order by created_at;

-- name: outbox_events.done
with changed as (
  update outbox_events row
  set status = 'PUBLISHED',
    published_at = row.locked_at + make_interval(secs => settled.after_ms / 1000),
    stream_generation = settled.generation,
    stream_seq = settled.sequence,
    locked_by = null, locked_at = null, lease_until = null, claim_token = null
  from unnest($1::uuid[], $2::uuid[], $3::float8[], $4::bigint[], $5::bigint[])
    as settled (id, token, after_ms, generation, sequence)
  where row.event_id = settled.id
    and row.claim_token = settled.token
  returning row.event_id as id, row.last_error as error
)
select case when count(*) < $6 then coalesce(array_agg(id::text), '{}') end as some
from changed;

-- name: outbox_events.retry
with changed as (
  update outbox_events row
  set status = 'PENDING',
    attempt_count = row.attempt_count + 1,
    next_retry_at = now() + make_interval(secs => settled.delay_ms / 1000),
    last_error = settled.error,
    locked_by = null, locked_at = null, lease_until = null, claim_token = null
  from unnest($1::uuid[], $2::uuid[], $3::text[],
      $4::float8[])
    as settled (id, token, error, delay_ms)
  where row.event_id = settled.id
    and row.claim_token = settled.token
  returning row.event_id as id, row.last_error as error
), recorded as (
  insert into outbox_attempts (event_id, outcome, worker, begun_at, error)
  select before.event_id, 'RETRIED', before.locked_by, before.locked_at, changed.error
  from changed
  join outbox_events before on before.event_id = changed.id
)
select case when count(*) < $5 then coalesce(array_agg(id::text), '{}') end as some
from changed;

-- name: outbox_events.failed
with changed as (
  update outbox_events row
  set status = 'FAILED',
    attempt_count = row.attempt_count + settled.attempted::int,
    last_error = settled.error,
    locked_by = null, locked_at = null, lease_until = null, claim_token = null
  from unnest($1::uuid[], $2::uuid[], $3::text[],
      $4::boolean[])
    as settled (id, token, error, attempted)
  where row.event_id = settled.id
    and row.claim_token = settled.token
  returning row.event_id as id, row.last_error as error
), recorded as (
  insert into outbox_attempts (event_id, outcome, worker, begun_at, error)
  select before.event_id, 'GAVE_UP', before.locked_by, before.locked_at, changed.error
  from changed
  join outbox_events before on before.event_id = changed.id
)
select case when count(*) < $5 then coalesce(array_agg(id::text), '{}') end as some
from changed;

-- name: outbox_events.released
with changed as (
  update outbox_events row
  set status = 'PENDING',
    next_retry_at = now() + make_interval(secs => settled.delay_ms / 1000),
    locked_by = null, locked_at = null, lease_until = null, claim_token = null
  from unnest($1::uuid[], $2::uuid[], $3::float8[])
    as settled (id, token, delay_ms)
  where row.event_id = settled.id
    and row.claim_token = settled.token
  returning row.event_id as id, row.last_error as error
)
select case when count(*) < $4 then coalesce(array_agg(id::text), '{}') end as some
from changed;

-- name: outbox_events.extend
with owned as (
  select row.event_id
  from unnest($1::uuid[],
    $2::uuid[]) as held (id, token)
  join outbox_events row
    on row.event_id = held.id
    and row.claim_token = held.token
  for update of row skip locked
)
update outbox_events row
set lease_until = now() + make_interval(secs => $3::float8 / 1000)
from owned
where row.event_id = owned.event_id
returning row.event_id as id;

-- name: point_reservations.claim
with oldest as materialized (
  select row.ctid as place, row.aggregate_key, row.position as position,
    row.due_at as turn
  from point_reservations row
  where row.unfinished
    and row.due_at >=
      coalesce($1::timestamptz, now() - make_interval(secs => $2::float8 / 1000))
    and (row.next_retry_at is null or row.next_retry_at <= now())
    and (row.lease_until is null or row.lease_until <= now())
    and row.due_at <= now()
  order by due_at
  limit $3
), earlier as materialized (
  select row.*
  from (select aggregate_key, max(position) as last from oldest group by aggregate_key) as line
  cross join lateral (
    select row.ctid as place, row.aggregate_key, row.position as position,
    row.due_at as turn
    from point_reservations row
    where row.unfinished::int = 1
      and row.aggregate_key = line.aggregate_key
      and row.position < line.last
      and (row.next_retry_at is null or row.next_retry_at <= now())
    and (row.lease_until is null or row.lease_until <= now())
    and row.due_at <= now()
      and row.ctid not in (select place from oldest)
    order by row.position
    limit $4
  ) as row
  order by row.position
  limit $5
), seen as (
  select place, aggregate_key, position,
    max(turn) over (partition by aggregate_key order by position) as turn
  from (select * from oldest union all select * from earlier) as due
), blocked as materialized (
  select line.aggregate_key, blocking.position
  from (select aggregate_key, max(position) as last from seen group by aggregate_key) as line
  cross join lateral (
    select earlier.position as position
    from point_reservations earlier
    where earlier.unfinished::int = 1
      and earlier.aggregate_key = line.aggregate_key
      and earlier.position < line.last
      and (earlier.claim_token = any($6::uuid[])) is not true
      and earlier.ctid not in (select place from seen)
    order by earlier.position
    limit 1
  ) as blocking
), free as materialized (
  select place, aggregate_key, turn, nth
  from (
    select place, aggregate_key, turn, row_number() over line as nth,
      bool_or(place is null) over line as is_blocked
    from (
      select place, aggregate_key, position, turn from seen
      union all
      select null, aggregate_key, position, null from blocked
    ) as one
    window line as (partition by aggregate_key order by position)
  ) as one
  where not is_blocked
  order by turn, nth
  limit $7
), cut as (select null::timestamptz as turn),
found as materialized (
  select row.ctid as place, free.aggregate_key, free.nth, row.status = 'PROCESSING' as taken_over
  from free
  join point_reservations row on row.ctid = free.place
  where (row.next_retry_at is null or row.next_retry_at <= now())
    and (row.lease_until is null or row.lease_until <= now())
    and row.due_at <= now()
  for update of row skip locked
), missing as materialized (
  select aggregate_key, nth
  from free
  where place not in (select place from found)
), claimable as (
  select place, taken_over
  from found
  where not exists (
    select from missing
    where missing.aggregate_key = found.aggregate_key
      and missing.nth < found.nth)
), claimed as (
  update point_reservations row
  set status = 'PROCESSING',
    attempt_count = row.attempt_count + claimable.taken_over::int,
    locked_by = $8,
    locked_at = clock_timestamp(),
    lease_until = now() + make_interval(secs => $9::float8 / 1000),
    claim_token = $10,
    last_error = null, updated_at = now()
  from claimable
  where row.ctid = claimable.place
  returning row.*, claimable.taken_over
), changed as (
  select id as id, 'The lease ran out' as error from claimed where taken_over
), recorded as (
  insert into reservation_attempts (id, outcome, worker, begun_at, error)
  select before.id, 'TAKEN_OVER', before.locked_by, before.locked_at, changed.error
  from changed
  join point_reservations before on before.id = changed.id
)
select id as id, aggregate_key, attempt_count as attempt_count, taken_over,
  kind, caller, user_id, unit, point_amount, stock_keeping_unit, source, source_id,
    trace_id, traceparent,
    extract(epoch from locked_at - greatest(execute_at, created_at))::float8 as late_seconds,
  case when id is not distinct from scan.shown_with then scan.found end as scan
from (
  select json_build_object(
      'seen', oldest.count,
      'more', oldest.count >= $11 or free.count >= $12 or cut.turn is not null,
      'reached', least(
        oldest.turn, cut.turn, case when free.count >= $13 then free.turn end)::text,
      'nextDueMs', (
        select extract(epoch from due_at - clock_timestamp())::float8 * 1000
        from point_reservations
        where unfinished
          and due_at > now()
        order by due_at
        limit 1)
    ) as found,
    (select id from claimed limit 1) as shown_with
  from (select count(*), max(turn) as turn from oldest) as oldest,
    (select count(*), max(turn) as turn from free) as free,
    cut
) as scan
left join claimed on true
order by position;

-- name: point_reservations.done
with changed as (
  update point_reservations row
  set status = 'DONE',
    transaction_id = settled.transaction_id,
    outcome = settled.outcome::json,
    updated_at = now(),
    done_at = now(),
    locked_by = null, locked_at = null, lease_until = null, claim_token = null
  from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::text[])
    as settled (id, token, transaction_id, outcome)
  where row.id = settled.id
    and row.claim_token = settled.token
  returning row.id as id, row.last_error as error
)
select case when count(*) < $5 then coalesce(array_agg(id::text), '{}') end as some
from changed;

-- name: point_reservations.retry
with changed as (
  update point_reservations row
  set status = 'PENDING',
    attempt_count = row.attempt_count + 1,
    next_retry_at = now() + make_interval(secs => settled.delay_ms / 1000),
    last_error = settled.error,
    locked_by = null, locked_at = null, lease_until = null, claim_token = null
  from unnest($1::uuid[], $2::uuid[], $3::text[],
      $4::float8[])
    as settled (id, token, error, delay_ms)
  where row.id = settled.id
    and row.claim_token = settled.token
  returning row.id as id, row.last_error as error
), recorded as (
  insert into reservation_attempts (id, outcome, worker, begun_at, error)
  select before.id, 'RETRIED', before.locked_by, before.locked_at, changed.error
  from changed
  join point_reservations before on before.id = changed.id
)
select case when count(*) < $5 then coalesce(array_agg(id::text), '{}') end as some
from changed;

-- name: point_reservations.failed
with changed as (
  update point_reservations row
  set status = 'FAILED',
    attempt_count = row.attempt_count + settled.attempted::int,
    last_error = settled.error,
    locked_by = null, locked_at = null, lease_until = null, claim_token = null
  from unnest($1::uuid[], $2::uuid[], $3::text[],
      $4::boolean[])
    as settled (id, token, error, attempted)
  where row.id = settled.id
    and row.claim_token = settled.token
  returning row.id as id, row.last_error as error
), recorded as (
  insert into reservation_attempts (id, outcome, worker, begun_at, error)
  select before.id, 'GAVE_UP', before.locked_by, before.locked_at, changed.error
  from changed
  join point_reservations before on before.id = changed.id
)
select case when count(*) < $5 then coalesce(array_agg(id::text), '{}') end as some
from changed;

-- name: point_reservations.released
with changed as (
  update point_reservations row
  set status = 'PENDING',
    next_retry_at = now() + make_interval(secs => settled.delay_ms / 1000),
    locked_by = null, locked_at = null, lease_until = null, claim_token = null
  from unnest($1::uuid[], $2::uuid[], $3::float8[])
    as settled (id, token, delay_ms)
  where row.id = settled.id
    and row.claim_token = settled.token
  returning row.id as id, row.last_error as error
)
select case when count(*) < $4 then coalesce(array_agg(id::text), '{}') end as some
from changed;

-- name: point_reservations.extend
with owned as (
  select row.id
  from unnest($1::uuid[],
    $2::uuid[]) as held (id, token)
  join point_reservations row
    on row.id = held.id
    and row.claim_token = held.token
  for update of row skip locked
)
update point_reservations row
set lease_until = now() + make_interval(secs => $3::float8 / 1000)
from owned
where row.id = owned.id
returning row.id as id;

-- name: notifications.claim
with oldest as materialized (
  select row.ctid as place, row.aggregate_key, row.version as position,
    row.created_at as turn
  from notifications row
  where row.unfinished
    and row.created_at >=
      coalesce($1::timestamptz, now() - make_interval(secs => $2::float8 / 1000))
    and (row.next_retry_at is null or row.next_retry_at <= now())
    and (row.lease_until is null or row.lease_until <= now())
  order by created_at, version
  limit $3
), earlier as materialized (
  select row.*
  from (select aggregate_key, max(position) as last from oldest group by aggregate_key) as line
  cross join lateral (
    select row.ctid as place, row.aggregate_key, row.version as position,
    row.created_at as turn
    from notifications row
    where row.unfinished::int = 1
      and row.aggregate_key = line.aggregate_key
      and row.version < line.last
      and (row.next_retry_at is null or row.next_retry_at <= now())
    and (row.lease_until is null or row.lease_until <= now())
      and row.ctid not in (select place from oldest)
    order by row.version
    limit $4
  ) as row
  order by row.position
  limit $5
), seen as (
  select place, aggregate_key, position,
    max(turn) over (partition by aggregate_key order by position) as turn
  from (select * from oldest union all select * from earlier) as due
), blocked as materialized (
  select line.aggregate_key, blocking.position
  from (select aggregate_key, max(position) as last from seen group by aggregate_key) as line
  cross join lateral (
    select earlier.version as position
    from notifications earlier
    where earlier.unfinished::int = 1
      and earlier.aggregate_key = line.aggregate_key
      and earlier.version < line.last
      and (earlier.claim_token = any($6::uuid[])) is not true
      and earlier.ctid not in (select place from seen)
    order by earlier.version
    limit 1
  ) as blocking
), free as materialized (
  select place, aggregate_key, turn, nth
  from (
    select place, aggregate_key, turn, row_number() over line as nth,
      bool_or(place is null) over line as is_blocked
    from (
      select place, aggregate_key, position, turn from seen
      union all
      select null, aggregate_key, position, null from blocked
    ) as one
    window line as (partition by aggregate_key order by position)
  ) as one
  where not is_blocked
  order by turn, nth
  limit $7
), cut as (select null::timestamptz as turn),
found as materialized (
  select row.ctid as place, free.aggregate_key, free.nth, row.status = 'PROCESSING' as taken_over
  from free
  join notifications row on row.ctid = free.place
  where (row.next_retry_at is null or row.next_retry_at <= now())
    and (row.lease_until is null or row.lease_until <= now())
  for update of row skip locked
), missing as materialized (
  select aggregate_key, nth
  from free
  where place not in (select place from found)
), claimable as (
  select place, taken_over
  from found
  where not exists (
    select from missing
    where missing.aggregate_key = found.aggregate_key
      and missing.nth < found.nth)
), claimed as (
  update notifications row
  set status = 'PROCESSING',
    attempt_count = row.attempt_count + claimable.taken_over::int,
    locked_by = $8,
    locked_at = clock_timestamp(),
    lease_until = now() + make_interval(secs => $9::float8 / 1000),
    claim_token = $10,
    last_error = null, next_retry_at = null, awaits_predecessor = false
  from claimable
  where row.ctid = claimable.place
  returning row.*, claimable.taken_over
), changed as (
  select notification_id as id, 'The lease ran out' as error from claimed where taken_over
), recorded as (
  insert into delivery_attempts (notification_id, outcome, worker, begun_at, error)
  select before.notification_id, 'TAKEN_OVER', before.locked_by, before.locked_at, changed.error
  from changed
  join notifications before on before.notification_id = changed.id
)
select notification_id as id, aggregate_key, attempt_count as attempt_count, taken_over,
  event_id, user_id, type, payload_json as payload, traceparent,
    extract(epoch from locked_at - occurred_at)::float8 as age_seconds,
  case when notification_id is not distinct from scan.shown_with then scan.found end as scan
from (
  select json_build_object(
      'seen', oldest.count,
      'more', oldest.count >= $11 or free.count >= $12 or cut.turn is not null,
      'reached', least(
        oldest.turn, cut.turn, case when free.count >= $13 then free.turn end)::text
    ) as found,
    (select notification_id from claimed limit 1) as shown_with
  from (select count(*), max(turn) as turn from oldest) as oldest,
    (select count(*), max(turn) as turn from free) as free,
    cut
) as scan
left join claimed on true
order by version;

-- name: notifications.done
with changed as (
  update notifications row
  set status = 'SENT',
    sent_at = row.locked_at + make_interval(secs => settled.after_ms / 1000),
    locked_by = null, locked_at = null, lease_until = null, claim_token = null
  from unnest($1::uuid[], $2::uuid[], $3::float8[])
    as settled (id, token, after_ms)
  where row.notification_id = settled.id
    and row.claim_token = settled.token
  returning row.notification_id as id, row.last_error as error
)
select case when count(*) < $4 then coalesce(array_agg(id::text), '{}') end as some
from changed;

-- name: notifications.retry
with changed as (
  update notifications row
  set status = 'PENDING',
    attempt_count = row.attempt_count + 1,
    next_retry_at = now() + make_interval(secs => settled.delay_ms / 1000),
    last_error = settled.error,
    locked_by = null, locked_at = null, lease_until = null, claim_token = null
  from unnest($1::uuid[], $2::uuid[], $3::text[],
      $4::float8[])
    as settled (id, token, error, delay_ms)
  where row.notification_id = settled.id
    and row.claim_token = settled.token
  returning row.notification_id as id, row.last_error as error
), recorded as (
  insert into delivery_attempts (notification_id, outcome, worker, begun_at, error)
  select before.notification_id, 'RETRIED', before.locked_by, before.locked_at, changed.error
  from changed
  join notifications before on before.notification_id = changed.id
)
select case when count(*) < $5 then coalesce(array_agg(id::text), '{}') end as some
from changed;

-- name: notifications.failed
with changed as (
  update notifications row
  set status = 'FAILED',
    attempt_count = row.attempt_count + settled.attempted::int,
    last_error = settled.error,
    locked_by = null, locked_at = null, lease_until = null, claim_token = null
  from unnest($1::uuid[], $2::uuid[], $3::text[],
      $4::boolean[])
    as settled (id, token, error, attempted)
  where row.notification_id = settled.id
    and row.claim_token = settled.token
  returning row.notification_id as id, row.last_error as error, row.event_id, row.payload_json
), recorded as (
  insert into delivery_attempts (notification_id, outcome, worker, begun_at, error)
  select before.notification_id, 'GAVE_UP', before.locked_by, before.locked_at, changed.error
  from changed
  join notifications before on before.notification_id = changed.id
), dead_letter as (
  insert into notification_dlq (notification_id, event_id, payload_json, error_message)
  select id, event_id, payload_json, error from changed
  on conflict (notification_id) do nothing
)
select case when count(*) < $5 then coalesce(array_agg(id::text), '{}') end as some
from changed;

-- name: notifications.released
with changed as (
  update notifications row
  set status = 'PENDING',
    next_retry_at = now() + make_interval(secs => settled.delay_ms / 1000),
    locked_by = null, locked_at = null, lease_until = null, claim_token = null
  from unnest($1::uuid[], $2::uuid[], $3::float8[])
    as settled (id, token, delay_ms)
  where row.notification_id = settled.id
    and row.claim_token = settled.token
  returning row.notification_id as id, row.last_error as error
)
select case when count(*) < $4 then coalesce(array_agg(id::text), '{}') end as some
from changed;

-- name: notifications.extend
with owned as (
  select row.notification_id
  from unnest($1::uuid[],
    $2::uuid[]) as held (id, token)
  join notifications row
    on row.notification_id = held.id
    and row.claim_token = held.token
  for update of row skip locked
)
update notifications row
set lease_until = now() + make_interval(secs => $3::float8 / 1000)
from owned
where row.notification_id = owned.notification_id
returning row.notification_id as id;
