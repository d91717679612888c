// Reservations with a message broker between the one who looks for what is due and the one who grants it,
// built to be compared with a worker on the table (docs/decisions/reservations.md). The scanner marks due
// rows as PROCESSING and publishes them; the worker consumes them, grants, and acknowledges.
import { AckPolicy, type NatsConnection, RetentionPolicy, StorageType } from "nats";

export interface BrokerOptions {
  databaseUrl: string;
  natsUrl: string;
  name: string;
  batchSize: number;
  leaseMs: number; // of a row that the scanner has marked, and of a message that the worker has
}

export const durable = "points-worker";
const nanosecondsPerMs = 1_000_000;

export const streamOf = (name: string): string => `bench-${name}-due`;
export const subjectOf = (name: string): string => `bench.${name}.due`;

export async function makeQueue(
  connection: NatsConnection,
  { name, batchSize, leaseMs }: BrokerOptions,
): Promise<void> {
  const manager = await connection.jetstreamManager();
  await manager.streams.add({
    name: streamOf(name),
    subjects: [subjectOf(name)],
    retention: RetentionPolicy.Workqueue,
    storage: StorageType.File,
  });
  await manager.consumers.add(streamOf(name), {
    durable_name: durable,
    ack_policy: AckPolicy.Explicit,
    ack_wait: leaseMs * nanosecondsPerMs,
    max_ack_pending: 4 * batchSize, // as many as a worker on the table has in hand
  });
}
