import { type Database, isUnavailable } from "@kenri/shared/postgres/postgres.ts";
import type { Log } from "@kenri/shared/process/log.ts";
import { pause } from "@kenri/shared/process/signals.ts";
import { Trouble } from "@kenri/shared/process/trouble.ts";
import { Batch } from "@kenri/shared/queue/batch.ts";
import type { Handover } from "@kenri/shared/queue/handover.ts";
import { observeBatch } from "@kenri/shared/queue/batch_metrics.ts";
import { stepTogether } from "@kenri/shared/telemetry/tracing.ts";
import type { NotificationRow } from "./deliveries.ts";
import type { Notification } from "./notification.ts";
import { receiveEvents } from "./receive_events.ts";

export interface EventStoreParts {
  database: Database;
  toDelivery: Handover<NotificationRow>;
  log: Log;
  abandon: AbortSignal;
}

const maxPerInsert = 500;
const retryMs = 1_000;

/** Stores received events in batches, and holds them as long as the database is unavailable. */
export class EventStore {
  readonly #batch: Batch<Notification, boolean>;
  readonly #abandon: AbortSignal;
  readonly #outage: Trouble;
  #isAvailable = false; // unknown before the first event

  constructor(
    { database, toDelivery, log, abandon }: EventStoreParts,
    predecessorWaitMs: number,
  ) {
    this.#abandon = abandon;
    this.#outage = new Trouble(
      (error) => log.error("Database unavailable, consumption paused: {error}", { error }),
      () => log.info("Database available, consumption resumed"),
    );
    this.#batch = new Batch({
      flush: (received: Notification[]) =>
        stepTogether("receive", received, (received) =>
          toDelivery.write(
            received.length,
            (lease) => receiveEvents(database, received, predecessorWaitMs, lease),
          )),
      keysOf: ({ event_id }) => [event_id],
      mayBeOneItem: (error) => !isOutage(error),
      maxItems: maxPerInsert,
      maxFlushes: 2,
      maxWaiting: Infinity, // the intake limits how many messages it has in hand
    });
    observeBatch("received", this.#batch);
  }

  /** Whether the database answered last time, by storing an event or by refusing it. */
  get isAvailable(): boolean {
    return this.#isAvailable;
  }

  /** Returns whether the event is new. Rejects if the database refuses it, or when the service stops. */
  async store(notification: Notification): Promise<boolean> {
    for (;;) {
      try {
        const isNew = await this.#batch.add(notification);
        this.#noteAvailable();
        return isNew;
      } catch (error) {
        if (!isOutage(error)) {
          this.#noteAvailable();
          throw error;
        }
        this.#isAvailable = false;
        this.#outage.fails("database", error);
        if (this.#abandon.aborted) throw error;
        await pause(retryMs, this.#abandon);
      }
    }
  }

  #noteAvailable(): void {
    this.#isAvailable = true;
    this.#outage.works("database");
  }
}

// A missing table or right (42…), as before the migrations, is not the fault of a message either.
function isOutage(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  return isUnavailable(error) || /^42/.test(String(code));
}
