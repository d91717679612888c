import type { Log } from "../process/log.ts";
import type { Job } from "../queue/job.ts";
import type { WorkerOptions } from "../queue/worker_settings.ts";
import type { EventRow } from "./event_types.ts";
import type { Server } from "./lost_events.ts";

// Where a relay gets its events from: a leased table (table_source.ts), or anything else that can
// lease events and keep them until they are settled, such as a Redis stream with a consumer group.
export interface EventSource<Row extends EventRow>
  extends Pick<Job<Row, Published>, "claim" | "settle" | "extend"> {
  // Only a source that keeps what it has published can find out what the stream has lost.
  loss?: LossCheck;
}

// Opened for each round of a relay, so that its first claim looks at all events.
export type OpenSource<Row extends EventRow> = (
  options: WorkerOptions & { worker: string },
  log: Log,
) => EventSource<Row>;

export interface Published {
  generation: number; // of the stream; 0 without a check for loss
  sequence: number;
  ackedAt: number; // by performance.now()
}

export interface LossCheck {
  // Compares what was published with the stream, and republishes what it has lost. Returns the
  // generation of the acknowledgements that arrive over this connection.
  compare(server: Server, stream: string): Promise<number>;
  // Republishes what was settled after that by a relay that did not notice the loss.
  republishLate(): Promise<void>;
}
