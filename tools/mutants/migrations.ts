import type { Mutant } from "./mutant.ts";

const migrations = ["tests/database/migrations_test.ts"];
const history = ["tests/database/migration_history_test.ts"];
const locks = ["tests/database/migration_locks_test.ts"];
const rights = ["tests/database/service_rights_test.ts"];
const role = ["tests/database/service_role_test.ts"];
const madeRoles = ["tests/database/made_roles_test.ts"];

// Not listed: notifications without `unique` on event_id. processed_events decides what is a duplicate
// before a notification is made, so the constraint guards against nothing that the service does.
export const mutants: Mutant[] = [
  {
    file: "migrations/apply.ts",
    property: "a file that would end its own transaction is refused",
    replace: 'if (owner.getTransactionStatus() !== "T")',
    by: 'if (owner.getTransactionStatus() === "E")',
    tests: migrations,
  },
  {
    file: "migrations/apply.ts",
    property: "a migration that can't have its lock steps back",
    replace: "await owner.query(`set local lock_timeout = ${lockTimeoutMs}`);",
    by: "await owner.query(`set local lock_timeout = ${lockTimeoutMs * 1_000}`);",
    tests: locks,
  },
  {
    file: "migrations/apply.ts",
    property: "what failed without a transaction is applied again",
    replace: `  for (const statement of statements) await owner.query(statement);
  await recordMigration(owner, file);`,
    by: `  await recordMigration(owner, file);
  for (const statement of statements) await owner.query(statement);`,
    tests: locks,
  },
  {
    file: "migrations/files.ts",
    property: "an edited file is refused",
    replace: "if (file.checksum !== row.checksum)",
    by: "if (file.checksum.length !== row.checksum.length)",
    tests: history,
  },
  {
    file: "migrations/files.ts",
    property: "line ends of another system are no edit",
    replace: '.replaceAll("\\r\\n", "\\n")',
    by: '.replace("\\r\\n", "\\n")',
    tests: history,
  },
  {
    file: "migrations/files.ts",
    property: "a database that is newer than the files is refused as such",
    replace: "if (row.version > (last?.version ?? 0))",
    by: "if (row.version > (last?.version ?? 0) + 1)",
    tests: history,
  },
  {
    file: "migrations/files.ts",
    property: "a renamed file is refused",
    replace: "version === row.version && name === row.name",
    by: "version === row.version || name === row.name",
    tests: history,
  },
  {
    file: "migrations/files.ts",
    property: "a gap between the numbers is refused",
    replace: "if (file.version === index + 1) continue;",
    by: "if (file.version >= index + 1) continue;",
    tests: history,
  },
  {
    file: "migrations/files.ts",
    property: "two files of one number are refused",
    replace: "if (twin?.version === file.version)",
    by: "if (twin?.name === file.name)",
    tests: history,
  },
  {
    file: "migrations/migrate.ts",
    property: "migrations at the same time apply each file once",
    replace: ".rows[0]?.taken) await sleep(lockRetryMs);",
    by: ".rows.length) await sleep(lockRetryMs);",
    tests: migrations,
  },
  {
    file: "migrations/migrate.ts",
    property: "how long the audit is kept is what the owner says",
    replace: "if (auditMonths !== undefined) await keepAudit(owner, auditMonths);",
    by: "if (auditMonths === 0) await keepAudit(owner, auditMonths);",
    tests: role,
  },
  {
    file: "migrations/owner.ts",
    property: "a server that never comes is given up",
    replace: "if (now >= deadline)",
    by: "if (now >= deadline + 3_600_000)",
    tests: migrations,
  },
  {
    file: "migrations/owner.ts",
    property: "a server that is not there yet is waited for",
    replace: "if (!isUnavailable(error) || isDistrust(error)) throw error;",
    by: "if (isUnavailable(error) || isDistrust(error)) throw error;",
    tests: migrations,
  },
  {
    file: "migrations/service_role.ts",
    property: "the service's url and the owner's must lead to the same database",
    replace: "if (database !== owner.database)",
    by: "if (database === '')",
    tests: migrations,
  },
  {
    file: "migrations/service_role.ts",
    property: "rights that grants.sql does not give any more are taken away",
    replace: "      revoke all on all tables in schema public from ${service};\n",
    by: "",
    tests: madeRoles,
  },
  {
    file: "migrations/service_role.ts",
    property: "a service reaches no database but its own",
    replace: "revoke all on database ${database} from public, ${service};",
    by: "revoke all on database ${database} from ${service};",
    tests: role,
  },
  {
    file: "migrations/service_role.ts",
    property: "grants that fail leave a running service the rights it has",
    replace: `  await owner.query("begin");
  try {
    await admitToDatabase(`,
    by: `  try {
    await admitToDatabase(`,
    tests: migrations,
  },
  {
    file: "migrations/service_role.ts",
    property: "powers that the owner can't take from the role are told",
    replace: "(rolcreatedb, 'can create databases'),",
    by: "(not rolcanlogin, 'can create databases'),",
    tests: madeRoles,
  },
  {
    file: "migrations/entitlement/grants.sql",
    property: "the service can't delete what was entitled",
    replace: "grant select on entitlements to :service;",
    by: "grant select, delete on entitlements to :service;",
    tests: rights,
  },
  {
    file: "migrations/entitlement/grants.sql",
    property: "the service can't change the record of operations",
    replace: "grant select, insert on operations to :service;",
    by: "grant select, insert, update on operations to :service;",
    tests: rights,
  },
  {
    file: "migrations/entitlement/grants.sql",
    property: "the service can't say how long the audit is kept",
    replace: "grant select on audit_retention to :service;",
    by: "grant select, update on audit_retention to :service;",
    tests: rights,
  },
  {
    file: "migrations/entitlement/grants.sql",
    property: "the service can't say which migrations were applied",
    replace: "grant select on schema_migrations to :service;",
    by: "grant select, insert on schema_migrations to :service;",
    tests: rights,
  },
  {
    file: "migrations/entitlement/grants.sql",
    property: "the service can't change what is known of the stream's lives",
    replace: "grant select, insert on stream_generations to :service;",
    by: "grant select, insert, update on stream_generations to :service;",
    tests: rights,
  },
  {
    file: "migrations/notification/grants.sql",
    property: "the service can't delete captured messages",
    replace: "grant select, insert, update (operation_id, message_headers, message_body)",
    by: "grant select, insert, delete, update (operation_id, message_headers, message_body)",
    tests: rights,
  },
  {
    file: "migrations/notification/grants.sql",
    property: "of a dead letter the service can change its content only",
    replace: "grant select, insert, update (payload_json), delete on notification_dlq",
    by: "grant select, insert, update, delete on notification_dlq",
    tests: rights,
  },
  {
    file: "migrations/notification/grants.sql",
    property: "the service can't rewrite attempts",
    replace: "grant select, insert, delete on delivery_attempts",
    by: "grant select, insert, update, delete on delivery_attempts",
    tests: rights,
  },
  {
    file: "migrations/entitlement/0001_entitlements.sql",
    property: "an event that is under way is not finished",
    replace: "generated always as (status in ('PENDING', 'IN_FLIGHT')) stored",
    by: "generated always as (status in ('PENDING')) stored",
    tests: ["tests/relay/attempts_test.ts"],
  },
  {
    file: "migrations/entitlement/0001_entitlements.sql",
    property: "the oldest unfinished event is found by an index that has nothing else in it",
    replace: "create index outbox_events_oldest on outbox_events (created_at) where unfinished;",
    by: "create index outbox_events_oldest on outbox_events (created_at);",
    tests: ["tests/changes/plans_test.ts"],
  },
  {
    file: "migrations/entitlement/0003_line_of_key.sql",
    property: "the rows of a key are found by an index that a claim can use",
    replace: "where unfinished::int = 1;\n-- No release",
    by: "where unfinished::int = 0;\n-- No release",
    tests: ["tests/changes/plans_test.ts"],
  },
  {
    file: "migrations/entitlement/0006_locked_audit.sql",
    property: "the audit is kept for at least as long as the owner says",
    replace: "greatest(keep_months, (select r.keep_months from audit_retention r))",
    by: "least(keep_months, (select r.keep_months from audit_retention r))",
    tests: ["tests/audit/audit_partitions_test.ts"],
  },
  {
    file: "migrations/notification/0001_notifications.sql",
    property: "a notification that is being sent is not finished",
    replace: "generated always as (status in ('PENDING', 'PROCESSING')) stored",
    by: "generated always as (status in ('PENDING')) stored",
    tests: ["tests/delivery/delivery_test.ts"],
  },
  {
    file: "migrations/notification/0001_notifications.sql",
    property: "an advisory is kept once",
    replace: "advisory_id text not null unique,",
    by: "advisory_id text not null,",
    tests: ["tests/receiving/advisories_test.ts"],
  },
  {
    file: "migrations/notification/0002_line_of_key.sql",
    property: "the rows of a key are found by an index that a claim can use",
    replace: "where unfinished::int = 1;\n-- No release",
    by: "where unfinished::int = 0;\n-- No release",
    tests: ["tests/delivery/delivery_plans_test.ts"],
  },
];
