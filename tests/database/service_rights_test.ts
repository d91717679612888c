// All rights of a service's role in its database. With more rights, an attacker who took over the
// service could remove the records that reveal it.
import assert from "node:assert/strict";
import { ask } from "../../tools/servers/asking.ts";
import { freshDatabase } from "../support/databases.ts";
import type { ServiceName } from "../../tools/services.ts";

const rights = {
  account: [
    "account_roles: DELETE INSERT SELECT",
    "audit_logs: INSERT SELECT",
    "audit_retention: SELECT",
    "delete_old_audit: EXECUTE",
    "ended_sessions: DELETE INSERT SELECT UPDATE",
    "erase_audit_reasons: EXECUTE",
    "identities: DELETE INSERT SELECT UPDATE",
    "newest_state: EXECUTE",
    "operations: INSERT SELECT",
    "outbox_attempts: DELETE INSERT SELECT",
    "outbox_events: DELETE INSERT SELECT UPDATE",
    "public: USAGE",
    "schema_migrations: SELECT",
    "stream_generations: INSERT SELECT",
    "users: INSERT SELECT UPDATE",
  ],
  entitlement: [
    "aggregate_key_of: EXECUTE",
    "append_changes: EXECUTE",
    "append_points: EXECUTE",
    "audit_retention: SELECT",
    "drop_audit_partitions: EXECUTE",
    "entitlement_audit: SELECT",
    "entitlements: SELECT",
    "erase_audited: EXECUTE",
    "erase_entitlements: EXECUTE",
    "erase_points: EXECUTE",
    "erased_keys: SELECT",
    "idempotency_keys: DELETE INSERT SELECT UPDATE",
    "make_audit_partitions: EXECUTE",
    "operations: INSERT SELECT",
    "outbox_attempts: DELETE INSERT SELECT",
    "outbox_events: DELETE INSERT SELECT UPDATE",
    "point_reservations: DELETE INSERT SELECT UPDATE",
    "point_root: SELECT",
    "point_transactions: SELECT",
    "points_key_of: EXECUTE",
    "public: USAGE",
    "reconciliation: SELECT UPDATE",
    "reservation_attempts: DELETE INSERT SELECT",
    "schema_migrations: SELECT",
    "stream_generations: INSERT SELECT",
    "unreceived_events: DELETE INSERT SELECT UPDATE",
  ],
  notification: [
    "aggregate_key_of: EXECUTE",
    "delivery_attempts: DELETE INSERT SELECT",
    "endpoint_secrets.expires_at: UPDATE",
    "endpoint_secrets: DELETE INSERT SELECT",
    "endpoints: DELETE INSERT SELECT UPDATE",
    "idempo_ledger: DELETE INSERT SELECT UPDATE",
    "idempotency_keys: DELETE INSERT SELECT UPDATE",
    "notification_dlq.payload_json: UPDATE",
    "notification_dlq: DELETE INSERT SELECT",
    "notification_nats_dlq.message_body: UPDATE",
    "notification_nats_dlq.message_headers: UPDATE",
    "notification_nats_dlq.operation_id: UPDATE",
    "notification_nats_dlq: INSERT SELECT",
    "notifications: DELETE INSERT SELECT UPDATE",
    "operations: INSERT SELECT",
    "order_attempts.error: UPDATE",
    "order_attempts.request_headers: UPDATE",
    "order_attempts.response_body: UPDATE",
    "order_attempts.response_headers: UPDATE",
    "order_attempts: DELETE INSERT SELECT",
    "outbox_orders: DELETE INSERT SELECT UPDATE",
    "processed_events: DELETE INSERT SELECT UPDATE",
    "public: USAGE",
    "schema_migrations: SELECT",
  ],
} satisfies Partial<Record<ServiceName, string[]>>;

for (const service of Object.keys(rights) as (keyof typeof rights)[]) {
  Deno.test(`the role of ${service} has these rights and no others`, async () => {
    await using database = await freshDatabase(service);
    const role = new URL(database.serviceUrl).username;
    // Includes the rights of public, because the role has them, too.
    const found = await ask<{ granted: string }>(
      database.ownerUrl,
      `select object || ': ' || string_agg(distinct privilege_type, ' ') as granted
       from (
         select relname::text as object, relacl as acl from pg_class
         where relnamespace = 'public'::regnamespace
         union all
         select relname || '.' || attname, attacl
         from pg_attribute join pg_class on pg_class.oid = attrelid
         where relnamespace = 'public'::regnamespace
         union all
         select proname::text, coalesce(proacl, acldefault('f', proowner)) from pg_proc
         where pronamespace = 'public'::regnamespace
         union all
         select nspname::text, nspacl from pg_namespace where nspname = 'public'
       ) as objects, aclexplode(acl)
       where grantee in (0, (select oid from pg_roles where rolname = $1))
       group by object`,
      [role],
    );
    assert.deepEqual(found.map(({ granted }) => granted).sort(), rights[service].toSorted());
  });
}
