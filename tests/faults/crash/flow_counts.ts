// What the rows count in the databases of both services.
export const countsOf = {
  entitlement: `
  select 'stored answers' as what, count(*)::int from idempotency_keys
  union all
  select 'audit', count(*)::int from entitlement_audit
  union all
  select 'outbox ' || status, count(*)::int from outbox_events group by status
  union all
  select 'outbox attempts', coalesce(sum(attempt_count), 0)::int from outbox_events
  union all
  select 'transactions', count(*)::int from point_transactions
  union all
  select 'reservations ' || status, count(*)::int from point_reservations group by status
  union all
  select 'reservation attempts', coalesce(sum(attempt_count), 0)::int from point_reservations`,
  notification: `
  select 'processed' as what, count(*)::int from processed_events
  union all
  select 'notifications ' || status, count(*)::int from notifications group by status
  union all
  select 'notification attempts', coalesce(sum(attempt_count), 0)::int from notifications
  union all
  select 'dead letters', count(*)::int from notification_dlq
  union all
  select 'kept copies', count(*)::int from notification_nats_dlq`,
};
