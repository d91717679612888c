// The tests whose outcome depends on the versions of PostgreSQL and NATS: SQL, plans, locks, roles,
// streams, redelivery, users.

const pathOf = (name: string) => `tests/${name}_test.ts`;

/** A few of each kind: `deno task test:docker` runs them on servers in containers. */
export const inContainers = [
  "api",
  "changes_concurrency",
  "made_roles",
  "migrations",
  "pipeline",
  "receive_outcomes",
  "relay_order",
  "service_bounds",
  "service_role",
].map(pathOf);

/** All of them: `deno task test:oldest` runs them on the oldest servers that are supported. */
export const ofVersions = [
  ...inContainers,
  ...[
    "advisories",
    "advisory_streams",
    "audit_chain",
    "cluster",
    "delivery_order",
    "erase_user",
    "handover",
    "nats_refusals",
    "nats_users",
    "operations_plans",
    "plans",
    "pull",
    "receive_broker",
    "reconcile",
    "relay_loss",
    "replay",
    "restore_nats",
    "retention",
    "settings",
    "stream_start",
  ].map(pathOf),
  "tools/servers/password_test.ts",
];
