import type { JetStreamManager, StreamInfo } from "nats";
import { type Database, query } from "@kenri/shared/postgres";
import type { Log } from "@kenri/shared/log";

// A stream may lose what it acknowledged: a wiped disk, a power failure before fsync. Each published
// row remembers its sequence and the generation, the life of the stream, that stored it. Before a
// relay publishes, it compares. A stream that was made anew, or that ends before the last sequence
// we recorded, begins a new generation that says how far the old one was kept; every row beyond is
// published again. A row settled late, by a relay that has not yet noticed the loss, carries the
// old generation and is found by that relay's own check when it connects again.

interface Generation {
  generation: number;
  stream: string;
  stream_created_at: string;
}

// Returns the generation that acknowledgements of this connection belong to.
export async function repairLostEvents(
  database: Database,
  manager: JetStreamManager,
  stream: string,
  log: Log,
): Promise<number> {
  const current = await findGeneration(database);
  // The order matters: what was recorded before the stream was asked can't lie beyond its end.
  const recorded = await findLastRecorded(database, current?.generation ?? 0);
  const info = await manager.streams.info(stream);
  let generation = current?.generation ?? 0;
  const keptUpTo = current ? kept(current, recorded, info) : 0;
  if (keptUpTo !== undefined) {
    const began = await beginGeneration(database, generation + 1, info, keptUpTo);
    // Another relay found the same and was first; look again, with what it recorded.
    if (!began) return await repairLostEvents(database, manager, stream, log);
    generation++;
    if (current) {
      log.error("Stream {stream} lost what came after sequence {keptUpTo}, of {recorded}", {
        stream,
        keptUpTo,
        recorded,
      });
    }
  }
  const republished = await putBackLost(database);
  if (republished > 0) {
    log.warn("{republished} events that the stream has lost are published again", { republished });
  }
  return generation;
}

// Undefined when nothing is lost, else the last sequence that is still there.
function kept(current: Generation, recorded: number, info: StreamInfo): number | undefined {
  const sameStream = current.stream === info.config.name &&
    current.stream_created_at === createdAt(info);
  if (!sameStream) return 0;
  return recorded > info.state.last_seq ? info.state.last_seq : undefined;
}

// As a string: with its nanoseconds it is the identity of the stream, and a Date would cut them.
function createdAt(info: StreamInfo): string {
  return String(info.created);
}

async function findGeneration(database: Database): Promise<Generation | undefined> {
  const rows = await query<Generation & Record<string, unknown>>(
    database,
    `select generation, stream, stream_created_at
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
  generation: number,
  info: StreamInfo,
  keptUpTo: number,
): Promise<boolean> {
  const rows = await query(
    database,
    `insert into stream_generations (generation, stream, stream_created_at, kept_up_to)
     values ($1, $2, $3, $4)
     on conflict (generation) do nothing
     returning generation`,
    [generation, info.config.name, createdAt(info), keptUpTo],
  );
  return rows.length > 0;
}

const putBackBatch = 1_000;

// Until nothing is found: a batch may come back short because another relay puts back as well.
async function putBackLost(database: Database): Promise<number> {
  let total = 0;
  for (;;) {
    const rows = await query(
      database,
      `with ended as (
         select generation, (
           select min(kept_up_to)
           from stream_generations later
           where later.generation > earlier.generation) as kept_up_to
         from stream_generations earlier
       ), lost as (
         select row.event_id
         from ended
         join outbox_events row
           on row.status = 'PUBLISHED'
           and row.stream_generation = ended.generation
           and row.stream_seq > ended.kept_up_to
         limit $1
         for update of row
       )
       update outbox_events row
       set status = 'PENDING', attempt_count = 0, published_at = null,
         stream_generation = null, stream_seq = null,
         last_error = 'lost by the stream'
       from lost
       where row.event_id = lost.event_id
       returning row.event_id`,
      [putBackBatch],
    );
    total += rows.length;
    if (rows.length === 0) return total;
  }
}
