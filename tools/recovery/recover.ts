// deno task recover: the entitlement database was restored from a backup. Changes that were made
// after the backup and published are still in the stream; they are made here once more, as they were.
// The service must be stopped meanwhile. May be repeated: what is there already is left alone.
import type { JetStreamClient } from "nats";
import { readConfig } from "../../entitlement/config.ts";
import { readNotification, UnreadableMessage } from "../../notification/notification.ts";
import {
  type Database,
  openDatabase,
  query,
  type Transaction,
  transaction,
} from "../../shared/postgres.ts";
import { run, withJetStream } from "./run.ts";

const perBatch = 500;
const answerWithinMs = 5_000;
// Events are stored a moment after their change, by another clock.
const clocksDifferMs = 3_600_000;

await run(async (say) => {
  const config = readConfig();
  const database = openDatabase(config.databaseUrl, "recover", config.databaseTls);
  try {
    await refuseWhileServing(database);
    const since = await findLastChange(database);
    let [read, recovered] = [0, 0];
    await withJetStream(config.nats, async (stream) => {
      for await (const events of readEvents(stream, config.stream.name, since)) {
        read += events.length;
        recovered += await recoverChanges(database, events);
      }
    });
    say(`${read} events were read, ${recovered} changes were recovered`);
  } finally {
    await database.end();
  }
});

async function refuseWhileServing(database: Database): Promise<void> {
  const sessions = await query(
    database,
    `select from pg_stat_activity
     where datname = current_database() and application_name = 'entitlement'`,
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

// As the outbox has them.
type Payload = ReturnType<typeof readNotification>["payload"];

async function* readEvents(
  jetStream: JetStreamClient,
  stream: string,
  since: Date,
): AsyncGenerator<Payload[]> {
  const consumer = await jetStream.consumers.get(stream, { opt_start_time: since.toISOString() });
  for (let pending = (await consumer.info()).num_pending; pending > 0;) {
    const pulled = await consumer.fetch({ max_messages: perBatch, expires: answerWithinMs });
    const messages = await Array.fromAsync(pulled);
    if (messages.length === 0) throw new Error("The stream does not answer");
    pending = messages.at(-1)?.info.pending ?? 0;
    yield messages.map(({ data }) => readPayload(data)).filter((event) => event !== undefined);
  }
}

function readPayload(data: Uint8Array): Payload | undefined {
  try {
    return readNotification(data).payload;
  } catch (error) {
    if (error instanceof UnreadableMessage) return undefined; // not written by the relay
    throw error;
  }
}

async function recoverChanges(database: Database, events: Payload[]): Promise<number> {
  return await transaction(database, async (tx) => {
    const stored = await Promise.all(events.map((event) => storeChange(tx, event)));
    return stored.filter((isNew) => isNew).length;
  });
}

// A version that the database has reached is known to it. The event is published again, and receivers
// remove the duplicate. The Idempotency-Key is not part of an event, so it is lost.
async function storeChange(tx: Transaction, event: Payload): Promise<boolean> {
  const stored = await query(
    tx,
    `with change as (
       select payload, event_id, event_type, user_id, stock_keeping_unit, source, source_id, version,
         trace_id, occurred_at as time,
         case event_type when 'EntitlementGranted' then 'ACTIVE' else 'REVOKED' end as status
       from (select $1::jsonb as payload) as event
       cross join jsonb_to_record(payload) as fields (
         event_id uuid, event_type text, user_id text, stock_keeping_unit text, source text,
         source_id text, version bigint, trace_id text, occurred_at timestamptz)
       where event_type in ('EntitlementGranted', 'EntitlementRevoked')
     ), stored as (
       insert into entitlements as entitlement
         (user_id, stock_keeping_unit, status, granted_at, revoked_at, source, source_id, version,
          updated_at)
       select user_id, stock_keeping_unit, status,
         case status when 'ACTIVE' then time end, case status when 'REVOKED' then time end,
         source, source_id, version, time
       from change
       on conflict (user_id, stock_keeping_unit) do update set
         status = excluded.status,
         granted_at = coalesce(excluded.granted_at, entitlement.granted_at),
         revoked_at = coalesce(excluded.revoked_at, entitlement.revoked_at),
         source = excluded.source,
         source_id = excluded.source_id,
         version = excluded.version,
         updated_at = excluded.updated_at
       where entitlement.version < excluded.version
       returning version
     ), announced as (
       insert into outbox_events (event_id, event_type, aggregate_key, payload, created_at)
       select event_id, event_type, user_id || ':' || stock_keeping_unit, payload, time
       from change
       join stored using (version)
     )
     insert into entitlement_audit
       (audit_id, occurred_at, user_id, stock_keeping_unit, action, source, source_id, request_id,
        detail)
     select event_id, time, user_id, stock_keeping_unit,
       case status when 'ACTIVE' then 'GRANT' else 'REVOKE' end, source, source_id, 'recovered',
       jsonb_build_object('version', version, 'trace_id', trace_id)
     from change
     join stored using (version)
     returning 1`,
    [JSON.stringify(event)],
  );
  return stored.length > 0;
}
