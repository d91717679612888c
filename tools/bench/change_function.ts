// The same work as a change over HTTP, done by one function inside PostgreSQL.
import { createHash } from "node:crypto";
import { auditHash } from "../../entitlement/audit/hash.ts";
import { lockNumber } from "../../shared/commands/locks.ts";
import { uuidv7 } from "../../shared/process/uuid.ts";
import type { DatabaseUrls } from "../load/stage.ts";
import { expectRows } from "./database.ts";
import type { ServerFunction } from "./function_per_commit.ts";
import { withClient } from "../servers/asking.ts";

export const changeFunction = functionNamed(
  "bench_grant",
  (columns) => `select *, ${auditHash("entry")} from (${columns}) as entry`,
);

/** The same without the hash that protects the audit rows. */
export const unsealedFunction = functionNamed(
  "bench_grant_unsealed",
  (columns) => `select *, ''::bytea as hash from (${columns}) as entry`,
);

type Seal = (columns: string) => string;

function functionNamed(name: string, seal: Seal): ServerFunction {
  return {
    make: ({ ownerUrl }) => withClient(ownerUrl, (owner) => owner.query(definition(name, seal))),
    call: `select ${name}($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
    values,
    assertDone,
  };
}

function definition(name: string, seal: Seal): string {
  return `
      create function ${name}(
        wanted_user text, wanted_sku text, reason text, purchase text, key text, hash text,
        event uuid, trace text, parent text, key_lock bigint, entitlement_lock bigint
      ) returns text language plpgsql as $$
      declare
        known idempotency_keys;
        before entitlements;
        at timestamptz;
        at_text text;
        new_version bigint;
        answer text;
        new_hash bytea;
      begin
        perform pg_advisory_xact_lock(least(key_lock, entitlement_lock));
        perform pg_advisory_xact_lock(greatest(key_lock, entitlement_lock));
        select * into known from idempotency_keys where idem_key = key and expires_at > now();
        if found then
          return known.response_body;
        end if;
        select * into before from entitlements
        where user_id = wanted_user and stock_keeping_unit = wanted_sku;
        at := greatest(clock_timestamp(), before.updated_at + interval '1 microsecond');
        at_text := to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"');
        new_version := coalesce(before.version, 0) + 1;
        answer := json_build_object(
          'user_id', wanted_user, 'stock_keeping_unit', wanted_sku, 'status', 'ACTIVE',
          'version', new_version, 'updated_at', at_text)::text;
        insert into entitlement_audit
          (audit_id, occurred_at, user_id, stock_keeping_unit, action, source, source_id,
           request_id, caller, detail, salt, previous_hash, previous_at, hash)
        ${seal(auditColumns)}
        returning entitlement_audit.hash into new_hash;
        insert into entitlements as entitlement
          (user_id, stock_keeping_unit, status, granted_at, source, source_id, version, updated_at,
           last_hash, hashed_at)
        values (wanted_user, wanted_sku, 'ACTIVE', at, reason, purchase, new_version, at,
          new_hash, at)
        on conflict (user_id, stock_keeping_unit) do update set
          status = excluded.status, granted_at = excluded.granted_at, source = excluded.source,
          source_id = excluded.source_id, version = excluded.version,
          updated_at = excluded.updated_at, last_hash = excluded.last_hash,
          hashed_at = excluded.hashed_at;
        insert into outbox_events
          (event_id, event_type, aggregate_key, payload, traceparent, created_at)
        values (event, 'EntitlementGranted', aggregate_key_of(wanted_user, wanted_sku),
          jsonb_build_object(
            'event_id', event, 'event_type', 'EntitlementGranted', 'occurred_at', at_text,
            'user_id', wanted_user, 'stock_keeping_unit', wanted_sku, 'source', reason,
            'source_id', purchase, 'version', new_version, 'trace_id', trace),
          parent, at);
        insert into idempotency_keys as stored
          (idem_key, request_hash, response_code, response_body, created_at, expires_at)
        values (key, hash, 200, answer, now(), now() + interval '24 hours')
        on conflict (idem_key) do update set
          request_hash = excluded.request_hash, response_code = excluded.response_code,
          response_body = excluded.response_body, created_at = excluded.created_at,
          expires_at = excluded.expires_at
        where stored.expires_at <= now();
        return answer;
      end $$`;
}

const auditColumns = `
          select event as audit_id, at as occurred_at, wanted_user as user_id,
            wanted_sku as stock_keeping_unit, 'GRANT' as action, reason as source,
            purchase as source_id, key as request_id, '' as caller,
            jsonb_build_object('version', new_version, 'trace_id', trace) as detail,
            gen_random_uuid() as salt, before.last_hash as previous_hash,
            before.hashed_at as previous_at`;

function values(number: number): string[] {
  const [user, sku, key] = [`user-${number}`, "premium", `key-${number}`];
  const purchase = `purchase-${number}`;
  const identity = JSON.stringify(["GRANT", user, sku, "purchase", purchase]);
  const hash = createHash("sha256").update(identity).digest("hex");
  const trace = hash.slice(0, 32);
  return [
    ...[user, sku, "purchase", purchase, key, hash, uuidv7(), trace],
    ...[`00-${trace}-${hash.slice(0, 16)}-01`, `${lockNumber(key)}`, `${lockNumber(user + sku)}`],
  ];
}

async function assertDone(database: DatabaseUrls, changes: number): Promise<void> {
  for (
    const from of [
      "entitlements where status = 'ACTIVE' and version = 1",
      "idempotency_keys where response_code = 200",
      "outbox_events where status = 'PENDING' and payload->>'version' = '1'",
      "entitlement_audit where action = 'GRANT' and hash is not null",
    ]
  ) await expectRows(database, changes, from);
}
