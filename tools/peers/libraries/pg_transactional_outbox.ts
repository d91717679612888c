import type pg from "pg";
import {
  createReplicationSegmentMutexConcurrencyController,
  createReplicationSemaphoreConcurrencyController,
  DatabaseSetup,
  getDisabledLogger,
  initializeMessageStorage,
  initializeReplicationMessageListener,
  type ReplicationListenerConfig,
} from "pg-transactional-outbox";
import { ask, withClient } from "../../servers/asking.ts";
import type { Task } from "../contender.ts";
import { type Event, groupOf, type Library } from "./library.ts";

const [schema, table, publication] = ["public", "outbox", "outbox_publication"];

const connections = 20; // each message in work has one
const atOnce = 40; // messages, or segments that work at the same time

// Slots of all databases share one namespace.
const slotOf = ({ databaseUrl }: Task) => new URL(databaseUrl).pathname.slice(1);

function configOf(task: Task): ReplicationListenerConfig {
  const connectionString = task.databaseUrl;
  const pool = { connectionString, max: connections };
  return {
    outboxOrInbox: "outbox",
    dbListenerConfig: { connectionString },
    dbHandlerConfig: pool,
    settings: {
      dbSchema: schema,
      dbTable: table,
      dbPublication: publication,
      dbReplicationSlot: slotOf(task),
      enableMaxAttemptsProtection: false,
      enablePoisonousMessageProtection: false,
      // The time in which a message waits for a connection counts.
      messageProcessingTimeoutInMs: 120_000,
    },
  };
}

export const pgTransactionalOutbox: Library = {
  tables: "public.outbox",

  async install({ databaseUrl }) {
    const setup = {
      outboxOrInbox: "outbox" as const,
      database: "",
      schema,
      table,
      listenerRole: "postgres",
      publication,
      replicationSlot: "",
    };
    await ask(databaseUrl, DatabaseSetup.dropAndCreateTable(setup));
    await ask(databaseUrl, DatabaseSetup.setupReplicationCore(setup));
  },

  async fill(client, events, task) {
    const store = initializeMessageStorage(configOf(task), getDisabledLogger());
    for (const event of events) await store(messageOf(event, task), client);
  },

  // The slot exists only while it is measured. It would have to read what the others write.
  async start(task, publish) {
    const slot = slotOf(task);
    await ask(task.databaseUrl, "select pg_create_logical_replication_slot($1, 'pgoutput')", [
      slot,
    ]);
    const [stop] = initializeReplicationMessageListener(
      configOf(task),
      { handle: ({ payload }) => publish(payload as Event) },
      getDisabledLogger(),
      {
        concurrencyStrategy: task.isOrdered
          ? createReplicationSegmentMutexConcurrencyController()
          : createReplicationSemaphoreConcurrencyController(atOnce),
      },
    );
    return async () => {
      await stop();
      await withClient(task.databaseUrl, (client) => dropSlot(client, slot));
    };
  },
};

function messageOf(event: Event, { keys }: Task) {
  return {
    id: event.id,
    aggregateType: "entitlement",
    aggregateId: event.key,
    messageType: event.content.event_type,
    segment: keys > atOnce ? groupOf(event, atOnce) : event.key,
    payload: event,
    createdAt: new Date().toISOString(),
  };
}

// PostgreSQL needs a moment to notice that its reader has gone.
async function dropSlot(client: pg.Client, slot: string): Promise<void> {
  const isActive = "select from pg_replication_slots where slot_name = $1 and active";
  while ((await client.query(isActive, [slot])).rowCount) {
    await new Promise((again) => setTimeout(again, 20));
  }
  await client.query("select pg_drop_replication_slot($1)", [slot]);
}
