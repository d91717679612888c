// The tests whose outcome depends on the versions of PostgreSQL and NATS: SQL, plans, locks, roles,
// streams, redelivery, users. `deno task test:docker` and `deno task test:oldest` run them.

const pathOf = (name: string) => `tests/${name}_test.ts`;

/** On the servers that they are given. */
export const onGivenServers = [
  "advisories",
  "advisory_streams",
  "api",
  "audit_chain",
  "changes_concurrency",
  "delivery_order",
  "erase_user",
  "handover",
  "made_roles",
  "migrations",
  "operations_plans",
  "pipeline",
  "plans",
  "pull",
  "receive_outcomes",
  "reconcile",
  "relay_order",
  "replay",
  "retention",
  "service_bounds",
  "service_role",
  "settings",
].map(pathOf);

/** On servers that they start themselves, to take them away or to give them settings. */
export const onOwnServers = [
  ...[
    "cluster",
    "nats_users",
    "receive_broker",
    "relay_loss",
    "restore_nats",
  ].map(pathOf),
  "tools/servers/password_test.ts",
];
