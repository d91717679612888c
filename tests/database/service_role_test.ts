// A service's own role can use its tables and nothing else.
import assert from "node:assert/strict";
import { migrate } from "../../migrations/migrate.ts";
import { append, change } from "../audit/appended.ts";
import { migrationsOf } from "../../tools/servers/databases.ts";
import { freshDatabase, withClient } from "../support/databases.ts";
import { newestVersion } from "./migrated.ts";
import { refuses } from "./refuses.ts";

const auditRow = `insert into entitlement_audit
  (audit_id, occurred_at, user_id, stock_keeping_unit, action, source, source_id, request_id, detail)
  values (gen_random_uuid(), now(), 'ann', 'book', 'GRANT', 'purchase', '1', 'key', '{}')`;

Deno.test("the entitlement service can write and read its tables", async () => {
  await using database = await freshDatabase("entitlement");
  await withClient(database.serviceUrl, async (service) => {
    await service.query(append(change));
    await service.query(append({ ...change, action: "REVOKE", version: 2 }));
    await service.query(`insert into idempotency_keys
      (idem_key, request_hash, response_code, response_body, created_at, expires_at)
      values ('key', 'hash', 200, '{}', now(), now())`);
    await service.query("delete from idempotency_keys");
    await service.query(`insert into outbox_events (event_id, event_type, aggregate_key, payload)
      values (gen_random_uuid(), 'granted', 'ann:book', '{}')`);
    await service.query("update outbox_events set status = 'IN_FLIGHT'");
    await service.query("delete from outbox_events");
    await service.query(`insert into outbox_attempts (event_id, outcome)
      values (gen_random_uuid(), 'RETRIED')`);
    await service.query("delete from outbox_attempts");
    await service.query(
      "insert into operations values (gen_random_uuid(), now(), 'REPLAY', 'outbox', 'kim', 'r', '[]')",
    );
    await service.query("update reconciliation set proven_until = now()");
    await service.query("delete from unreceived_events");
    const { rows } = await service.query("select version from entitlements");
    assert.deepEqual(rows, [{ version: "2" }]);
    for (const table of ["outbox_events", "idempotency_keys", "entitlement_audit"]) {
      await service.query(`select from ${table}`);
    }
    const { rows: [last] } = await service.query("select max(version) from schema_migrations");
    assert.equal(last.max, await newestVersion("entitlement"));
  });
});

const refused = [
  "create table mine (id integer)",
  "create temporary table mine (id integer)",
  "create schema mine",
  "create view mine as select 1",
  "create function mine() returns integer language sql as 'select 1'",
  "create database mine",
  "create role mine",
  "create extension pgcrypto",
  "alter table entitlements add column mine integer",
  "alter table entitlements owner to current_user",
  "create index on entitlements (status)",
  "drop table entitlements",
  "drop function make_audit_partitions(integer)",
  "create or replace function drop_audit_partitions(integer) returns integer language sql as 'select 1'",
  "alter function erase_audited(uuid, text, uuid[], timestamptz[]) security invoker",
  "update audit_retention set keep_months = 1",
  "delete from audit_retention",
  "truncate outbox_events",
  "delete from entitlements",
  "insert into entitlements select * from entitlements",
  ...["user_id = 'eve'", "status = 'ACTIVE'", "version = 7", "last_hash = null"]
    .concat("hashed_at = now()", "updated_at = now()", "source_id = '2'")
    .map((set) => `update entitlements set ${set}`),
  "select from entitlements for update",
  auditRow,
  `insert into ${"entitlement_audit_default"} select * from entitlement_audit`,
  "select grant_direct_writes(current_user)",
  "select check_erasure(gen_random_uuid(), 'ann')",
  "update audit_retention set direct_until = 'infinity'",
  "update entitlement_audit set source_id = '2'",
  "delete from entitlement_audit",
  "truncate entitlement_audit",
  "update operations set who = 'nobody'",
  "delete from operations",
  "update outbox_attempts set error = ''",
  "delete from reconciliation",
  "alter table entitlement_audit disable trigger all",
  "drop trigger direct_write on entitlements",
  "create trigger mine before insert on entitlement_audit execute function suppress_redundant_updates_trigger()",
  "create rule mine as on insert to entitlement_audit do instead nothing",
  "alter table entitlement_audit enable row level security",
  "set session_replication_role = replica",
  `create table mine partition of entitlement_audit for values from ('1999-01-01') to ('1999-02-01')`,
  "insert into schema_migrations (version, name, checksum) values (9, 'mine', '')",
  "delete from schema_migrations",
  "select from secrets",
  "select from pg_authid",
  "select pg_read_file('/etc/passwd')",
  "copy (select 1) to program 'true'",
  "set role postgres",
  "set session authorization postgres",
  "alter role current_user superuser",
];

const refusedOn = (partition: string) => [
  `update ${partition} set source_id = '2'`,
  `delete from ${partition}`,
  `truncate ${partition}`,
  `drop table ${partition}`,
  `alter table ${partition} add column mine integer`,
  `alter table entitlement_audit detach partition ${partition}`,
];

Deno.test("the entitlement service is refused everything else", async (t) => {
  await using database = await freshDatabase("entitlement");
  await withClient(database.ownerUrl, async (owner) => {
    await owner.query("create table secrets (secret text)");
    await owner.query(auditRow);
  });
  await withClient(database.serviceUrl, async (service) => {
    const { rows: [{ partition }] } = await service.query(
      "select tableoid::regclass::text as partition from entitlement_audit",
    );
    for (const statement of [...refused, ...refusedOn(partition)]) {
      await t.step(statement, () => refuses(service, statement));
    }
  });
});

Deno.test("the service can't mislead the functions that run as the owner", async () => {
  await using database = await freshDatabase("entitlement");
  await withClient(database.serviceUrl, async (service) => {
    await service.query(append(change));
    const changed = async (sql: string) => (await service.query(sql)).rows[0].changed;
    const rows = "array_agg(audit_id), array_agg(occurred_at)";

    await assert.rejects(
      service.query("select make_audit_partitions(1000000)"),
      /months_ahead must be at most 24/,
    );
    assert.equal(await changed("select drop_audit_partitions(1) as changed"), 0);

    const record = async (kind: string, layer: string): Promise<string> => {
      const { rows: [{ id }] } = await service.query(
        `insert into operations (operation_id, kind, layer, who, reason, items)
         values (gen_random_uuid(), $1, $2, 'kim', 'asked for it', '[]')
         returning operation_id as id`,
        [kind, layer],
      );
      return id;
    };
    const erase = (person: string, operation: string) =>
      changed(
        `select erase_audited('${operation}', '${person}', ${rows}) as changed
         from entitlement_audit`,
      );
    for (const operation of [crypto.randomUUID(), await record("REPLAY", "outbox")]) {
      await assert.rejects(erase("ann", operation), /no erasure has the operation_id/);
    }
    const id = await record("ERASE_USER", "user");
    assert.equal(await erase("bob", id), 0, "rows of somebody else");
    // Neither a table nor an operator of the service can take the place of the owner's.
    await service.query("set search_path = pg_temp, public");
    assert.equal(await erase("ann", id), 1);
    const { rows: [row] } = await service.query(
      "select user_id, source_id, request_id, action, source from entitlement_audit",
    );
    assert.deepEqual(row, {
      ...{ user_id: `erased-${id}`, source_id: "erased", request_id: "erased" },
      ...{ action: "GRANT", source: "purchase" },
    });
    assert.equal(await erase("ann", id), 0);
  });
});

Deno.test("the migration sets the minimum time for which the audit is kept", async () => {
  await using database = await freshDatabase("entitlement");
  const folder = migrationsOf("entitlement");
  await migrate({
    folder,
    say: () => {},
    ...database,
    ownerSettings: { "retention.audit-months": 2 },
  });
  await withClient(database.ownerUrl, async (owner) => {
    const { rows } = await owner.query("select keep_months from audit_retention");
    assert.deepEqual(rows, [{ keep_months: 2 }]);
  });
});

Deno.test("the notification service can use its tables, and keeps its dead letters and its record", async () => {
  await using database = await freshDatabase("notification");
  await withClient(database.serviceUrl, async (service) => {
    await service.query("insert into processed_events (event_id) values (gen_random_uuid())");
    await service.query("delete from processed_events");
    await service.query("update notifications set status = 'SENT'");
    for (const table of ["notifications", "notification_dlq", "notification_nats_dlq"]) {
      await service.query(`select from ${table}`);
    }
    for (const table of ["notification_dlq", "notification_nats_dlq"]) {
      await refuses(service, `update ${table} set created_at = now()`);
    }
    await service.query("delete from notification_dlq"); // as when a dead letter is sent back
    await service.query("update notification_nats_dlq set operation_id = gen_random_uuid()");
    await refuses(service, "delete from notification_nats_dlq");
    await refuses(service, "update operations set who = 'nobody'");
    await refuses(service, "delete from operations");
    await refuses(service, "update delivery_attempts set error = ''");
    await refuses(service, "drop table notifications");
    await refuses(service, "create table mine (id integer)");
    await refuses(service, "create temporary table mine (id integer)");
    await refuses(service, "select from pg_authid");
  });
});

Deno.test("a service reaches no database but its own", async () => {
  await using entitlement = await freshDatabase("entitlement");
  await using notification = await freshDatabase("notification");
  const nameOf = (url: string) => new URL(url).pathname.slice(1);
  const strangers: [string, string][] = [
    [entitlement.serviceUrl, nameOf(notification.ownerUrl)],
    [notification.serviceUrl, nameOf(entitlement.ownerUrl)],
    [entitlement.serviceUrl, "postgres"],
    [entitlement.serviceUrl, "template1"],
  ];
  for (const [serviceUrl, database] of strangers) {
    const url = new URL(serviceUrl);
    url.pathname = database;
    await assert.rejects(
      withClient(url.href, (client) => client.query("select 1")),
      /permission denied for database/,
    );
  }
});
