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

-- name: outbox_orders.claim
with oldest as materialized (
  select row.ctid as place, row.aggregate_key, row.position as position,
    row.due_at as turn, lane as lane
  from outbox_orders row
  where row.unfinished
    and row.due_at >=
      coalesce($1::timestamptz, now() - make_interval(secs => $2::float8 / 1000))
    and (row.next_run_at is null or row.next_run_at <= now())
    and (row.lease_until is null or row.lease_until <= now())
    and row.due_at <= now()
  order by due_at
  limit $3
), earlier as materialized (
  select row.*
  from (select aggregate_key, max(position) as last from oldest group by aggregate_key) as line
  cross join lateral (
    select row.ctid as place, row.aggregate_key, row.position as position,
    row.due_at as turn, lane as lane
    from outbox_orders row
    where row.unfinished::int = 1
      and row.aggregate_key = line.aggregate_key
      and row.position < line.last
      and (row.next_run_at is null or row.next_run_at <= now())
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
    max(turn) over (partition by aggregate_key order by position) as turn, lane
  from (select * from oldest union all select * from earlier) as due
), blocked as materialized (
  select line.aggregate_key, blocking.position
  from (select aggregate_key, max(position) as last from seen group by aggregate_key) as line
  cross join lateral (
    select earlier.position as position
    from outbox_orders earlier
    where earlier.unfinished::int = 1
      and earlier.aggregate_key = line.aggregate_key
      and earlier.position < line.last
      and (earlier.claim_token = any($6::uuid[])) is not true
      and earlier.ctid not in (select place from seen)
    order by earlier.position
    limit 1
  ) as blocking
), unblocked as materialized (
  select place, aggregate_key, turn, nth, lane
  from (
    select place, aggregate_key, turn, lane, row_number() over line as nth,
      bool_or(place is null) over line as is_blocked
    from (
      select place, aggregate_key, position, turn, lane from seen
      union all
      select null, aggregate_key, position, null, null from blocked
    ) as one
    window line as (partition by aggregate_key order by position)
  ) as one
  where not is_blocked
    and lane <> all($7)
), numbered as materialized (
  select *, row_number() over (partition by lane order by turn, nth) as of_lane
  from unblocked
), free as materialized (
  select place, aggregate_key, turn, nth
  from numbered
  where of_lane <= $8
  order by turn, nth
  limit $9
), cut as (select min(turn) as turn from numbered where of_lane > $10),
found as materialized (
  select row.ctid as place, free.aggregate_key, free.nth, row.status = 'SENDING' as taken_over
  from free
  join outbox_orders row on row.ctid = free.place
  where (row.next_run_at is null or row.next_run_at <= now())
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
  update outbox_orders row
  set status = 'SENDING',
    attempts = row.attempts + claimable.taken_over::int,
    locked_by = $11,
    locked_at = clock_timestamp(),
    lease_until = now() + make_interval(secs => $12::float8 / 1000),
    claim_token = $13,
    last_error_msg = null, updated_at = now(), awaits_predecessor = false
  from claimable
  where row.ctid = claimable.place
  returning row.*, claimable.taken_over
), changed as (
  select id as id, 'The lease ran out' as error from claimed where taken_over
), recorded as (
  insert into order_attempts (id, outcome, worker, begun_at, error)
  select before.id, 'TAKEN_OVER', before.locked_by, before.locked_at, changed.error
  from changed
  join outbox_orders before on before.id = changed.id
)
select id as id, aggregate_key, attempts as attempt_count, taken_over,
  lane as lane, caller, idempotency_key, adapter, order_request_json::text as request,
    request_digest, endpoint_id, event_id, trace_id,
    traceparent, operation_id,
    extract(epoch from locked_at)::float8 * 1000 as claimed_at_ms,
    extract(epoch from expires_at - locked_at)::float8 * 1000 as expires_in_ms,
    extract(epoch from locked_at - throttled_since)::float8 * 1000 as throttled_ms,
    endpoint_id is not null and exists (
      select from outbox_orders earlier
      where earlier.parked
        and earlier.aggregate_key = claimed.aggregate_key
        and earlier.position < claimed.position) as is_behind_parked,
    (
      select json_build_object('status', ledger.status, 'request_digest', ledger.request_digest,
        'reason_code', ledger.reason_code, 'operation_id', ledger.operation_id)
      from idempo_ledger ledger
      where ledger.idempotency_key = claimed.idempotency_key) as ledger,
    (
      select json_build_object('url', endpoint.url, 'state', endpoint.state,
        'at_once', endpoint.at_once, 'failures', endpoint.failures,
        'is_probe', endpoint.state = 'FAILING'
          and endpoint.probe_order_id is not distinct from claimed.id,
        'secrets', (
          select json_agg(encode(secret.ciphertext, 'hex') order by secret.secret_id desc)
          from endpoint_secrets secret
          where secret.endpoint_id = claimed.endpoint_id
            and (secret.expires_at is null or secret.expires_at > now())))
      from endpoints endpoint
      where endpoint.endpoint_id = claimed.endpoint_id) as endpoint,
  case when id is not distinct from scan.shown_with then scan.found end as scan
from (
  select json_build_object(
      'seen', oldest.count,
      'more', oldest.count >= $14 or free.count >= $15 or cut.turn is not null,
      'reached', least(
        oldest.turn, cut.turn, case when free.count >= $16 then free.turn end)::text,
      'nextDueMs', (
        select extract(epoch from due_at - clock_timestamp())::float8 * 1000
        from outbox_orders
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

-- name: outbox_orders.done
with changed as (
  update outbox_orders row
  set status = 'SUCCEEDED',
    last_error_code = settled.reason_code,
    updated_at = now(),
    first_sent_at = case when settled.tried then coalesce(row.first_sent_at, row.locked_at)
      else row.first_sent_at end,
    throttled_since = case when settled.reason_code = 'THROTTLED'
      then coalesce(row.throttled_since, now()) end,
    finished_at = now(),
    locked_by = null, locked_at = null, lease_until = null, claim_token = null
  from unnest($1::uuid[], $2::uuid[], $3::boolean[], $4::uuid[], $5::text[], $6::json[], $7::bigint[], $8::json[], $9::text[], $10::boolean[])
    as settled (id, token, tried, endpoint_id, reason_code, request_headers, http_status, response_headers, response_body, is_json)
  where row.id = settled.id
    and row.claim_token = settled.token
  returning row.id as id, row.last_error_msg as error, settled.tried, settled.endpoint_id, settled.reason_code, settled.request_headers, settled.http_status, settled.response_headers, settled.response_body, settled.is_json, row.idempotency_key, row.request_digest, row.adapter, row.attempts, row.first_sent_at,
    row.operation_id
), recorded as (
  insert into order_attempts (id, outcome, worker, begun_at, error, endpoint_id, reason_code, request_headers, http_status, response_headers, response_body, is_json)
  select before.id, 'SUCCEEDED', before.locked_by, before.locked_at, changed.error, changed.endpoint_id, changed.reason_code, changed.request_headers, changed.http_status, changed.response_headers, changed.response_body, changed.is_json
  from changed
  join outbox_orders before on before.id = changed.id
  where changed.tried
), ledger as (
  insert into idempo_ledger as known (idempotency_key, request_digest, status, http_status, reason_code,
    response_payload_json, adapter, attempts, first_sent_at, decided_at, order_id, operation_id)
  select idempotency_key, request_digest, 'SUCCEEDED', http_status, null,
    case when is_json then response_body::json else to_json(response_body) end, adapter, attempts, first_sent_at, now(), id, operation_id
  from changed
  where tried
  on conflict (idempotency_key) do update set status = excluded.status,
    http_status = excluded.http_status,
    reason_code = excluded.reason_code,
    response_payload_json = excluded.response_payload_json,
    attempts = excluded.attempts,
    first_sent_at = coalesce(known.first_sent_at, excluded.first_sent_at),
    decided_at = excluded.decided_at,
    order_id = excluded.order_id,
    operation_id = excluded.operation_id
  where known.request_digest = excluded.request_digest
)

select case when count(*) < $11 then coalesce(array_agg(id::text), '{}') end as some
from changed;

-- name: outbox_orders.retry
with changed as (
  update outbox_orders row
  set status = case
      when row.endpoint_id is not null and exists (
        select from endpoints endpoint
        where endpoint.endpoint_id = row.endpoint_id
          and endpoint.state <> 'ACTIVE'
        for share) then 'PARKED'
      else 'FAILED' end,
    attempts = row.attempts + 1,
    next_run_at = now() + make_interval(secs => settled.delay_ms / 1000),
    last_error_msg = settled.error,
    last_error_code = settled.reason_code,
    updated_at = now(),
    first_sent_at = case when settled.tried then coalesce(row.first_sent_at, row.locked_at)
      else row.first_sent_at end,
    throttled_since = case when settled.reason_code = 'THROTTLED'
      then coalesce(row.throttled_since, now()) end,
    locked_by = null, locked_at = null, lease_until = null, claim_token = null
  from unnest($1::uuid[], $2::uuid[], $3::text[],
      $4::float8[], $5::boolean[], $6::uuid[], $7::text[], $8::json[], $9::bigint[], $10::json[], $11::text[], $12::boolean[])
    as settled (id, token, error, delay_ms, tried, endpoint_id, reason_code, request_headers, http_status, response_headers, response_body, is_json)
  where row.id = settled.id
    and row.claim_token = settled.token
  returning row.id as id, row.last_error_msg as error, settled.tried, settled.endpoint_id, settled.reason_code, settled.request_headers, settled.http_status, settled.response_headers, settled.response_body, settled.is_json
), recorded as (
  insert into order_attempts (id, outcome, worker, begun_at, error, endpoint_id, reason_code, request_headers, http_status, response_headers, response_body, is_json)
  select before.id, 'RETRIED', before.locked_by, before.locked_at, changed.error, changed.endpoint_id, changed.reason_code, changed.request_headers, changed.http_status, changed.response_headers, changed.response_body, changed.is_json
  from changed
  join outbox_orders before on before.id = changed.id
)

select case when count(*) < $13 then coalesce(array_agg(id::text), '{}') end as some
from changed;

-- name: outbox_orders.failed
with changed as (
  update outbox_orders row
  set status = 'ABORTED',
    attempts = row.attempts + settled.attempted::int,
    last_error_msg = settled.error,
    last_error_code = settled.reason_code,
    updated_at = now(),
    first_sent_at = case when settled.tried then coalesce(row.first_sent_at, row.locked_at)
      else row.first_sent_at end,
    throttled_since = case when settled.reason_code = 'THROTTLED'
      then coalesce(row.throttled_since, now()) end,
    finished_at = now(),
    locked_by = null, locked_at = null, lease_until = null, claim_token = null
  from unnest($1::uuid[], $2::uuid[], $3::text[],
      $4::boolean[], $5::boolean[], $6::uuid[], $7::text[], $8::json[], $9::bigint[], $10::json[], $11::text[], $12::boolean[])
    as settled (id, token, error, attempted, tried, endpoint_id, reason_code, request_headers, http_status, response_headers, response_body, is_json)
  where row.id = settled.id
    and row.claim_token = settled.token
  returning row.id as id, row.last_error_msg as error, settled.tried, settled.endpoint_id, settled.reason_code, settled.request_headers, settled.http_status, settled.response_headers, settled.response_body, settled.is_json, row.idempotency_key, row.request_digest, row.adapter, row.attempts, row.first_sent_at,
    row.operation_id
), recorded as (
  insert into order_attempts (id, outcome, worker, begun_at, error, endpoint_id, reason_code, request_headers, http_status, response_headers, response_body, is_json)
  select before.id, 'GAVE_UP', before.locked_by, before.locked_at, changed.error, changed.endpoint_id, changed.reason_code, changed.request_headers, changed.http_status, changed.response_headers, changed.response_body, changed.is_json
  from changed
  join outbox_orders before on before.id = changed.id
), ledger as (
  insert into idempo_ledger as known (idempotency_key, request_digest, status, http_status, reason_code,
    response_payload_json, adapter, attempts, first_sent_at, decided_at, order_id, operation_id)
  select idempotency_key, request_digest, 'FAILED', case reason_code when 'TIMEOUT' then 504 when 'CONNECTION_FAILED' then 502 when 'DNS_FAILED' then 502 when 'TLS_FAILED' then 502 when 'SERVER_ERROR' then 502 when 'REDIRECTED' then 502 when 'INTERNAL_ERROR' then 500 when 'THROTTLED' then 429 when 'ADDRESS_BLOCKED' then 403 when 'GONE' then 410 when 'UNREADABLE_REQUEST' then 400 when 'EXPIRED' then 408 when 'IDEMPOTENCY_CONFLICT' then 409 when 'ENDPOINT_DELETED' then 410 when 'KEPT_TOO_LONG' then 408 when 'USER_ERASED' then 410 else http_status end, reason_code,
    case when is_json then response_body::json else to_json(response_body) end, adapter, attempts, first_sent_at, now(), id, operation_id
  from changed
  where reason_code <> 'IDEMPOTENCY_CONFLICT'
  on conflict (idempotency_key) do update set status = excluded.status,
    http_status = excluded.http_status,
    reason_code = excluded.reason_code,
    response_payload_json = excluded.response_payload_json,
    attempts = excluded.attempts,
    first_sent_at = coalesce(known.first_sent_at, excluded.first_sent_at),
    decided_at = excluded.decided_at,
    order_id = excluded.order_id,
    operation_id = excluded.operation_id
  where known.request_digest = excluded.request_digest
    and known.status = 'FAILED'
    and known.operation_id is distinct from excluded.operation_id
)

select case when count(*) < $13 then coalesce(array_agg(id::text), '{}') end as some
from changed;

-- name: outbox_orders.released
with changed as (
  update outbox_orders row
  set status = case
      when row.endpoint_id is not null and exists (
        select from endpoints endpoint
        where endpoint.endpoint_id = row.endpoint_id
          and endpoint.state <> 'ACTIVE'
        for share) then 'PARKED'
      else 'PENDING' end,
    next_run_at = now() + make_interval(secs => settled.delay_ms / 1000),
    locked_by = null, locked_at = null, lease_until = null, claim_token = null
  from unnest($1::uuid[], $2::uuid[], $3::float8[])
    as settled (id, token, delay_ms)
  where row.id = settled.id
    and row.claim_token = settled.token
  returning row.id as id, row.last_error_msg as error
)

select case when count(*) < $4 then coalesce(array_agg(id::text), '{}') end as some
from changed;

-- name: outbox_orders.put_off
with changed as (
  update outbox_orders row
  set status = case
      when row.endpoint_id is not null and exists (
        select from endpoints endpoint
        where endpoint.endpoint_id = row.endpoint_id
          and endpoint.state <> 'ACTIVE'
        for share) then 'PARKED'
      else 'PENDING' end,
    next_run_at = now() + make_interval(secs => settled.delay_ms / 1000),
    last_error_msg = settled.error,
    last_error_code = settled.reason_code,
    updated_at = now(),
    first_sent_at = case when settled.tried then coalesce(row.first_sent_at, row.locked_at)
      else row.first_sent_at end,
    throttled_since = case when settled.reason_code = 'THROTTLED'
      then coalesce(row.throttled_since, now()) end,
    locked_by = null, locked_at = null, lease_until = null, claim_token = null
  from unnest($1::uuid[], $2::uuid[], $3::text[], $4::float8[], $5::boolean[], $6::uuid[], $7::text[], $8::json[], $9::bigint[], $10::json[], $11::text[], $12::boolean[])
    as settled (id, token, error, delay_ms, tried, endpoint_id, reason_code, request_headers, http_status, response_headers, response_body, is_json)
  where row.id = settled.id
    and row.claim_token = settled.token
  returning row.id as id, row.last_error_msg as error, settled.tried, settled.endpoint_id, settled.reason_code, settled.request_headers, settled.http_status, settled.response_headers, settled.response_body, settled.is_json
), recorded as (
  insert into order_attempts (id, outcome, worker, begun_at, error, endpoint_id, reason_code, request_headers, http_status, response_headers, response_body, is_json)
  select before.id, case changed.reason_code when 'THROTTLED' then 'PUT_OFF' else 'PROBED' end, before.locked_by, before.locked_at, changed.error, changed.endpoint_id, changed.reason_code, changed.request_headers, changed.http_status, changed.response_headers, changed.response_body, changed.is_json
  from changed
  join outbox_orders before on before.id = changed.id
)

select case when count(*) < $13 then coalesce(array_agg(id::text), '{}') end as some
from changed;

-- name: outbox_orders.extend
with owned as (
  select row.id
  from unnest($1::uuid[],
    $2::uuid[]) as held (id, token)
  join outbox_orders row
    on row.id = held.id
    and row.claim_token = held.token
  for update of row skip locked
)
update outbox_orders row
set lease_until = now() + make_interval(secs => $3::float8 / 1000)
from owned
where row.id = owned.id
returning row.id as id;
