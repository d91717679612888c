import type { JetStreamManager, StreamInfo } from "nats";
import { type Database, query } from "../postgres/postgres.ts";
import { sql } from "../postgres/sql.ts";
import type { Log } from "../process/log.ts";
import type { OutboxTable } from "./outbox_table.ts";
import { republishLost } from "./republish_lost.ts";

// A stream may lose messages that it has acknowledged, when its disk is wiped or the power fails
// before fsync. Each published row keeps its sequence and the generation of the stream that stored
// it. Before a relay publishes, it compares these with the stream. A new generation begins if the
// stream was created anew, if its server was restarted, or if the stream ends before the last
// recorded sequence. The new generation records how much of the old one was kept, and every row
// beyond that is republished.
//
// A restart counts even if nothing was lost: a relay that has not noticed it may settle a row later
// that was acknowledged before. Such a row has the old generation, so the next comparison finds it.
//
// All events of a table are in one stream, so sequences can be compared. Their subjects may differ.

interface StreamIdentity {
  stream: string;
  stream_created_at: string;
  server_id: string; // of one run of the server; empty in a cluster, which survives its servers
}

interface Generation extends StreamIdentity {
  generation: number;
}

export interface Server {
  manager: JetStreamManager;
  serverId: string;
}

// Returns the generation of the acknowledgements that arrive over this connection.
export async function repairLostEvents(
  database: Database,
  outbox: OutboxTable,
  { manager, serverId }: Server,
  stream: string,
  log: Log,
): Promise<number> {
  const current = await findGeneration(database);
  // The stream is asked after this, so a recorded sequence beyond its end must be lost.
  const recorded = await findLastRecorded(database, outbox, current?.generation ?? 0);
  const info = await manager.streams.info(stream);
  const found = identityOf(info, serverId);
  let generation = current?.generation ?? 0;
  if (!current || !isSame(current, found) || recorded > info.state.last_seq) {
    const keptUpTo = current && isSameStream(current, found) ? info.state.last_seq : 0;
    const began = await beginGeneration(
      database,
      { ...found, generation: generation + 1 },
      keptUpTo,
    );
    // Another relay was first to begin this generation. Compare again with what it recorded.
    if (!began) return await repairLostEvents(database, outbox, { manager, serverId }, stream, log);
    generation++;
    if (recorded > keptUpTo) {
      log.error("Stream {stream} lost its messages after sequence {keptUpTo}, up to {recorded}", {
        stream,
        keptUpTo,
        recorded,
      });
    }
  }
  await republishLost(database, outbox, log);
  return generation;
}

function identityOf({ config, created, cluster }: StreamInfo, serverId: string): StreamIdentity {
  return {
    stream: config.name,
    // A string, because its nanoseconds identify the stream and a Date would cut them off.
    stream_created_at: String(created),
    server_id: cluster?.name ? "" : serverId, // without a cluster there is no name
  };
}

function isSame(one: StreamIdentity, other: StreamIdentity): boolean {
  return isSameStream(one, other) && one.server_id === other.server_id;
}

function isSameStream(one: StreamIdentity, other: StreamIdentity): boolean {
  return one.stream === other.stream && one.stream_created_at === other.stream_created_at;
}

async function findGeneration(database: Database): Promise<Generation | undefined> {
  const rows = await query<Generation & Record<string, unknown>>(
    database,
    sql`select generation, stream, stream_created_at, server_id
     from stream_generations
     order by generation desc
     limit 1`,
  );
  return rows[0];
}

async function findLastRecorded(
  database: Database,
  outbox: OutboxTable,
  generation: number,
): Promise<number> {
  const rows = await query<{ stream_seq: number }>(
    database,
    sql`select stream_seq
     from ${outbox.table}
     where status = 'PUBLISHED' and stream_generation = ${generation} and stream_seq is not null
     order by stream_seq desc
     limit 1`,
  );
  return rows[0]?.stream_seq ?? 0;
}

async function beginGeneration(
  database: Database,
  { generation, stream, stream_created_at, server_id }: Generation,
  keptUpTo: number,
): Promise<boolean> {
  const rows = await query(
    database,
    sql`insert into stream_generations
       (generation, stream, stream_created_at, server_id, kept_up_to)
     values (${generation}, ${stream}, ${stream_created_at}, ${server_id}, ${keptUpTo})
     on conflict (generation) do nothing
     returning generation`,
  );
  return rows.length > 0;
}
