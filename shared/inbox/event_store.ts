import { isUnavailable } from "../postgres/postgres.ts";
import type { Log } from "../process/log.ts";
import { pause } from "../process/signals.ts";
import { Trouble } from "../process/trouble.ts";
import { Batch } from "../queue/batch.ts";
import { observeBatch } from "../queue/batch_metrics.ts";
import { stepTogether } from "../telemetry/tracing.ts";
import type { Inbox, InboxEvent } from "./inbox.ts";

const maxPerInsert = 500;
const retryMs = 1_000;

/** Stores received events in batches, and holds them as long as the database is unavailable. */
export class EventStore<Event extends InboxEvent> {
  readonly #batch: Batch<Event, boolean>;
  readonly #abandon: AbortSignal;
  readonly #outage: Trouble;
  #isAvailable = false; // unknown before the first event

  constructor(
    { log, abandon }: { log: Log; abandon: AbortSignal },
    { name: inbox, batch, store }: Inbox<Event>,
  ) {
    this.#abandon = abandon;
    this.#outage = new Trouble(
      (error) => log.error("Database unavailable, consumption paused: {error}", { error, inbox }),
      () => log.info("Database available, consumption resumed", { inbox }),
    );
    this.#batch = new Batch({
      flush: (events: Event[]) => stepTogether("receive", events, store),
      keysOf: ({ event_id }) => [event_id],
      mayBeOneItem: (error) => !isOutage(error),
      maxItems: maxPerInsert,
      maxFlushes: 2,
      restMs: 10, // what follows waits for it
      maxWaiting: Infinity, // the intake limits how many messages it has in hand
    });
    observeBatch(batch, this.#batch);
  }

  /** Whether the database answered last time, by storing an event or by refusing it. */
  get isAvailable(): boolean {
    return this.#isAvailable;
  }

  /** Returns whether the event is new. Rejects if the database refuses it, or when the service stops. */
  async store(event: Event): Promise<boolean> {
    for (;;) {
      try {
        const isNew = await this.#batch.add(event);
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
