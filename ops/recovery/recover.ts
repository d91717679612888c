// deno task recover: the entitlement database was restored from a backup. Changes that were made after
// the backup and published are still in the stream; they are made here once more, as they were. The
// service must be stopped meanwhile. May be repeated: what is there already is left alone.
//
// Only events that were sealed by the service, and whose versions follow what the database has, are
// recovered by default. Others are listed; --accept all, or --accept ID ID…, makes them as well. It
// writes the audit with times of the past, which only the owner of the database may do.
import type { JetStreamClient } from "nats";
import { z } from "zod";
import { auditHash } from "@kenri/entitlement/audit/hash.ts";
import { readConfig } from "@kenri/entitlement/config.ts";
import { parseSettings } from "@kenri/shared/process/settings.ts";
import { databaseUrl } from "@kenri/shared/process/server_urls.ts";
import {
  type Database,
  openDatabase,
  query,
  type Transaction,
  transaction,
} from "@kenri/shared/postgres/postgres.ts";
import { type Candidate, describe, examine } from "./examine.ts";
import type { EventFields } from "@kenri/proto/entitlement/decode.ts";
import { run, withJetStream } from "./run.ts";

const perBatch = 500;
const answerWithinMs = 5_000;
// Events are stored a moment after their change, by another clock.
const clocksDifferMs = 3_600_000;
const shownAtMost = 20;

interface Recovery {
  database: Database;
  jetStream: JetStreamClient;
  stream: string;
  since: Date;
  keys: string[];
  isAccepted: (event: EventFields) => boolean;
}

interface Pass {
  read: number;
  recovered: number;
  left: number; // newer than what the database has, and not made
  shown: string[];
}

await run(async (say) => {
  const config = readConfig();
  const isAccepted = acceptedBy(Deno.args);
  const database = openDatabase(
    readOwnerUrl() ?? config.databaseUrl,
    "recover",
    config.databaseTls,
  );
  try {
    await refuseWhileServing(database, new URL(config.databaseUrl).username);
    const since = await findLastChange(database);
    await withJetStream(config.nats, async (jetStream) => {
      const { sealKeys: keys, stream: { name: stream } } = config;
      const { read, recovered, left, shown } = await recoverAll(
        { database, jetStream, stream, since, keys, isAccepted },
      );
      say(`${read} events were read, ${recovered} changes were recovered`);
      if (left === 0) return;
      for (const line of shown) say(line);
      if (left > shown.length) say(`and ${left - shown.length} more`);
      throw new Error(
        `${left} changes can't be proven, and were not made: ` +
          "docs/runbook.md says how to look at them and accept them",
      );
    });
  } finally {
    await database.end();
  }
});

function acceptedBy(args: string[]): (event: EventFields) => boolean {
  const [flag, ...ids] = args;
  if (flag !== undefined && (flag !== "--accept" || ids.length === 0)) {
    throw new Error("Usage: deno task recover [--accept all | --accept EVENT_ID…]");
  }
  return ({ event_id }) => ids.includes("all") || ids.includes(`${event_id}`);
}

// Until a pass finds nothing more to do: an event that was sent back after its failure stands in the
// stream behind later versions of its entitlement, which then can't be made in the first pass.
async function recoverAll(recovery: Recovery): Promise<Pass> {
  let recovered = 0;
  for (;;) {
    const pass = await recoverOnce(recovery);
    recovered += pass.recovered;
    if (pass.recovered === 0 || pass.left === 0) return { ...pass, recovered };
  }
}

async function recoverOnce(recovery: Recovery): Promise<Pass> {
  const pass: Pass = { read: 0, recovered: 0, left: 0, shown: [] };
  for await (const { read, events } of readEvents(recovery)) {
    const stored = await recoverChanges(recovery, events);
    const left = await findNewer(recovery.database, events.filter((_, at) => !stored[at]));
    pass.read += read;
    pass.recovered += stored.filter((isNew) => isNew).length;
    pass.left += left.length;
    pass.shown.push(...left.map(describe).slice(0, shownAtMost - pass.shown.length));
  }
  return pass;
}

function readOwnerUrl(): string | undefined {
  const name = "entitlement.migration.database.url";
  const schema = z.object({ [name]: databaseUrl().optional() });
  return parseSettings(schema, (name) => Deno.env.get(name))[name];
}

// The names of other roles' applications are hidden from an owner who is no superuser.
async function refuseWhileServing(database: Database, role: string): Promise<void> {
  const sessions = await query(
    database,
    `select from pg_stat_activity
     where datname = current_database()
       and (application_name = 'entitlement' or usename = $1 and usename <> current_user)`,
    [decodeURIComponent(role)],
  );
  if (sessions.length > 0) throw new Error("The service entitlement is running: stop it first");
}

async function findLastChange(database: Database): Promise<Date> {
  const [row] = await query<{ at: Date | null }>(
    database,
    "select max(occurred_at) as at from entitlement_audit",
  );
  return new Date((row?.at?.getTime() ?? clocksDifferMs) - clocksDifferMs);
}

async function* readEvents(
  { jetStream, stream, since, keys }: Recovery,
): AsyncGenerator<{ read: number; events: Candidate[] }> {
  const consumer = await jetStream.consumers.get(stream, { opt_start_time: since.toISOString() });
  for (let pending = (await consumer.info()).num_pending; pending > 0;) {
    // The last pull is never full, so it waits until its time is over: a second is enough for a stream
    // that answers.
    const expires = pending < perBatch ? 1_000 : answerWithinMs;
    const pulled = await consumer.fetch({ max_messages: perBatch, expires });
    const messages = await Array.fromAsync(pulled);
    if (messages.length === 0) throw new Error("The stream does not answer");
    pending = messages.at(-1)?.info.pending ?? 0;
    const events = messages.map((message) => examine(message, keys))
      .filter((event) => event !== undefined);
    yield { read: messages.length, events };
  }
}

async function recoverChanges(
  { database, isAccepted }: Recovery,
  events: Candidate[],
): Promise<boolean[]> {
  return await transaction(database, (tx) =>
    Promise.all(events.map(({ payload, doubt }) => {
      const accepted = isAccepted(payload);
      return doubt === undefined || accepted ? storeChange(tx, payload, accepted) : false;
    })));
}

async function findNewer(database: Database, events: Candidate[]): Promise<Candidate[]> {
  const newer = await query<{ event_id: string }>(
    database,
    `select event.event_id
     from jsonb_to_recordset($1) as event (
       event_id text, user_id text, stock_keeping_unit text, version bigint)
     left join entitlements known using (user_id, stock_keeping_unit)
     where event.version > coalesce(known.version, 0)`,
    [JSON.stringify(events.map(({ payload }) => payload))],
  );
  const ids = new Set(newer.map(({ event_id }) => event_id));
  return events.filter(({ payload }) => ids.has(`${payload["event_id"]}`));
}

// A version that the database has reached is known to it. The event is published again, and receivers
// remove the duplicate. The caller and the Idempotency-Key are not part of an event, so they are lost.
// The chain of the audit goes on where the backup has it.
async function storeChange(
  tx: Transaction,
  event: EventFields,
  mayLeap: boolean,
): Promise<boolean> {
  const stored = await query(
    tx,
    `with change as materialized (
       select *, ${auditHash("entry")} as hash
       from (
         select $1::jsonb as payload, event.*, event_id as audit_id, 'recovered' as request_id,
           null::text as caller, before.last_hash as previous_hash, before.hashed_at as previous_at,
           case event_type when 'EntitlementGranted' then 'GRANT' else 'REVOKE' end as action,
           jsonb_build_object('version', event.version, 'trace_id', trace_id) as detail,
           gen_random_uuid() as salt
         from jsonb_to_record($1) as event (
           event_id uuid, event_type text, user_id text, stock_keeping_unit text, source text,
           source_id text, version bigint, trace_id text, occurred_at timestamptz)
         left join entitlements before using (user_id, stock_keeping_unit)
         where event_type in ('EntitlementGranted', 'EntitlementRevoked')
           and ($2 or event.version = coalesce(before.version, 0) + 1)
         offset 0 -- so that none of this is worked out twice
       ) as entry
     ), stored as (
       insert into entitlements as entitlement
         (user_id, stock_keeping_unit, status, granted_at, revoked_at, source, source_id, version,
          updated_at, last_hash, hashed_at)
       select user_id, stock_keeping_unit, case action when 'GRANT' then 'ACTIVE' else 'REVOKED' end,
         case action when 'GRANT' then occurred_at end,
         case action when 'REVOKE' then occurred_at end,
         source, source_id, version, occurred_at, hash, occurred_at
       from change
       on conflict (user_id, stock_keeping_unit) do update set
         status = excluded.status,
         granted_at = coalesce(excluded.granted_at, entitlement.granted_at),
         revoked_at = coalesce(excluded.revoked_at, entitlement.revoked_at),
         source = excluded.source,
         source_id = excluded.source_id,
         version = excluded.version,
         updated_at = excluded.updated_at,
         last_hash = excluded.last_hash,
         hashed_at = excluded.hashed_at
       where entitlement.version < excluded.version
       returning version
     ), announced as (
       insert into outbox_events (event_id, event_type, aggregate_key, payload, created_at)
       select event_id, event_type, aggregate_key_of(user_id, stock_keeping_unit), payload, occurred_at
       from change
       join stored using (version)
     )
     insert into entitlement_audit
       (audit_id, occurred_at, user_id, stock_keeping_unit, action, source, source_id, request_id,
        caller, detail, salt, previous_hash, previous_at, hash)
     select audit_id, occurred_at, user_id, stock_keeping_unit, action, source, source_id,
       request_id, caller, detail, salt, previous_hash, previous_at, hash
     from change
     join stored using (version)
     returning 1`,
    [JSON.stringify(event), mayLeap],
  );
  return stored.length > 0;
}
