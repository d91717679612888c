import type { JetStreamManager, StreamInfo } from "nats";
import { type Database, query } from "@kenri/shared/postgres/postgres.ts";
import type { Log } from "@kenri/shared/process/log.ts";
import { republishLost } from "./republish/republish_lost.ts";

// A stream may lose what it acknowledged: a wiped disk, a power failure before fsync. Each published
// row remembers its sequence and the generation, the life of the stream, that stored it. Before a
// relay publishes, it compares. A stream that was made anew, whose server was started anew, or that
// ends before the last sequence we recorded, begins a new generation that says how far the old one
// was kept; every row beyond is published again. A start counts although nothing may be lost: a row
// that was acknowledged before it and is settled after it, by a relay that has not yet noticed,
// carries the old generation and is found by the next look, at a connection or a few seconds later.

interface Life {
  stream: string;
  stream_created_at: string;
  server_id: string; // of this run of the server; empty in a cluster, which outlives its servers
}

interface Generation extends Life {
  generation: number;
}

interface Server {
  manager: JetStreamManager;
  serverId: string;
}

// Returns the generation that acknowledgements of this connection belong to.
export async function repairLostEvents(
  database: Database,
  { manager, serverId }: Server,
  stream: string,
  log: Log,
): Promise<number> {
  const current = await findGeneration(database);
  // The order matters: what was recorded before the stream was asked can't lie beyond its end.
  const recorded = await findLastRecorded(database, current?.generation ?? 0);
  const info = await manager.streams.info(stream);
  const life = lifeOf(info, serverId);
  let generation = current?.generation ?? 0;
  if (!current || !isSame(current, life) || recorded > info.state.last_seq) {
    const keptUpTo = current && isSameStream(current, life) ? info.state.last_seq : 0;
    const began = await beginGeneration(
      database,
      { ...life, generation: generation + 1 },
      keptUpTo,
    );
    // Another relay found the same and was first; look again, with what it recorded.
    if (!began) return await repairLostEvents(database, { manager, serverId }, stream, log);
    generation++;
    if (recorded > keptUpTo) {
      log.error("Stream {stream} lost what came after sequence {keptUpTo}, of {recorded}", {
        stream,
        keptUpTo,
        recorded,
      });
    }
  }
  await republishLost(database, log);
  return generation;
}

function lifeOf({ config, created, cluster }: StreamInfo, serverId: string): Life {
  return {
    stream: config.name,
    // As a string: with its nanoseconds it is the identity of the stream, and a Date would cut them.
    stream_created_at: String(created),
    server_id: cluster?.name ? "" : serverId, // a server that is alone names only a leader
  };
}

function isSame(one: Life, other: Life): boolean {
  return isSameStream(one, other) && one.server_id === other.server_id;
}

function isSameStream(one: Life, other: Life): boolean {
  return one.stream === other.stream && one.stream_created_at === other.stream_created_at;
}

async function findGeneration(database: Database): Promise<Generation | undefined> {
  const rows = await query<Generation & Record<string, unknown>>(
    database,
    `select generation, stream, stream_created_at, server_id
     from stream_generations
     order by generation desc
     limit 1`,
  );
  return rows[0];
}

async function findLastRecorded(database: Database, generation: number): Promise<number> {
  const rows = await query<{ stream_seq: number }>(
    database,
    `select stream_seq
     from outbox_events
     where status = 'PUBLISHED' and stream_generation = $1 and stream_seq is not null
     order by stream_seq desc
     limit 1`,
    [generation],
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
    `insert into stream_generations
       (generation, stream, stream_created_at, server_id, kept_up_to)
     values ($1, $2, $3, $4, $5)
     on conflict (generation) do nothing
     returning generation`,
    [generation, stream, stream_created_at, server_id, keptUpTo],
  );
  return rows.length > 0;
}
