// The tests whose outcome depends on the versions of PostgreSQL and NATS: SQL, plans, locks, roles,
// streams, redelivery, users.

/** A few of each kind: `deno task test:docker` runs them on servers in containers. */
export const inContainers = [
  "tests/changes/api_test.ts",
  "tests/changes/changes_concurrency_test.ts",
  "tests/database/made_roles_test.ts",
  "tests/database/migration_history_test.ts",
  "tests/database/migrations_test.ts",
  "tests/process/pipeline_test.ts",
  "tests/receiving/receive_outcomes_test.ts",
  "tests/relay/relay_order_test.ts",
  "tests/database/service_bounds_test.ts",
  "tests/database/service_role_test.ts",
];

/** All of them: `deno task test:oldest` runs them on the oldest servers that are supported. */
export const ofVersions = [
  ...inContainers,
  "tests/receiving/advisories_test.ts",
  "tests/receiving/advisory_streams_test.ts",
  "tests/audit/audit_chain_test.ts",
  "tests/nats/cluster_test.ts",
  "tests/delivery/delivery_order_test.ts",
  "tests/operators/erase_user_test.ts",
  "tests/relay/handover_test.ts",
  "tests/nats/nats_refusals_test.ts",
  "tests/nats/nats_users_test.ts",
  "tests/operators/operations_plans_test.ts",
  "tests/changes/plans_test.ts",
  "tests/queue/due_time_test.ts",
  "tests/queue/hot_keys_test.ts",
  "tests/queue/lanes_test.ts",
  "tests/receiving/points_events_test.ts",
  "tests/receiving/pull_test.ts",
  "tests/receiving/receive_broker_test.ts",
  "tests/reconciliation/reconcile_test.ts",
  "tests/relay/relay_loss_test.ts",
  "tests/reminders/reminders_test.ts",
  "tests/orders/draining_races_test.ts",
  "tests/orders/parked_test.ts",
  "tests/reconciliation/replay_test.ts",
  "tests/nats/restore_nats_test.ts",
  "tests/database/retention_test.ts",
  "tests/process/wrong_settings_test.ts",
  "tests/relay/stream_start_test.ts",
  "tools/servers/password_test.ts",
];
