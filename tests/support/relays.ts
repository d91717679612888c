// Relays in the process of the test, each with a pool and a connection of its own.
import { publishEvents, type PublishOptions } from "../../entitlement/publish_events.ts";
import type { OutboxRow } from "../../shared/outbox/outbox_table.ts";
import { NatsLink } from "../../shared/nats/link.ts";
import type { WantedStream } from "../../shared/nats/streams.ts";
import type { Log } from "../../shared/process/log.ts";
import { openDatabase } from "../../shared/postgres/postgres.ts";
import { Handover } from "../../shared/queue/handover.ts";
import type { Place } from "../../tools/load/stage.ts";
import { type FreshPlace, freshPlaceOf } from "./places.ts";

export interface RunningRelay extends AsyncDisposable {
  log: string[];
  toRelay: Handover<OutboxRow>;
  stop(): Promise<void>;
}

const quick: Omit<PublishOptions, "stream"> = {
  worker: "test",
  batchSize: 50,
  leaseMs: 30_000,
  pollIntervalMs: 50,
  sealKey: undefined,
  maxAttempts: 2,
  backoff: { baseMs: 50, maxMs: 50, minMs: 50, jitterMin: 1, jitterMax: 1 },
};

export function startRelay(
  place: Omit<Place, "ownerUrl">,
  options: Partial<typeof quick> = {},
): RunningRelay {
  const { log, lines } = collectingLog();
  const database = openDatabase(place.serviceUrl, "relay");
  const link = new NatsLink({ urls: place.natsUrl }, "relay", log);
  const toRelay = new Handover<OutboxRow>();
  const stopping = new AbortController();
  const abandon = new AbortController();
  const stream: WantedStream = {
    name: place.stream,
    subjects: [place.subject],
    duplicateWindowMs: 120_000,
    replicas: 1,
  };
  const running = publishEvents(
    { database, link, toRelay, log, abandon: abandon.signal },
    { ...quick, ...options, stream },
    stopping.signal,
  );
  let stopped: Promise<void> | undefined;
  const stop = () =>
    stopped ??= (async () => {
      stopping.abort();
      const grace = setTimeout(() => abandon.abort(), 10_000);
      await running;
      clearTimeout(grace);
      await link.close();
      await database.end();
    })();
  return { log: lines, toRelay, stop, [Symbol.asyncDispose]: stop };
}

export const freshPlace = (more?: Partial<Place>): Promise<FreshPlace> =>
  freshPlaceOf("entitlement", more);

// A log that keeps its entries as lines: "warn NATS connection lost".
export function collectingLog(): { log: Log; lines: string[] } {
  const lines: string[] = [];
  const at = (level: string) => (message: string, properties: Record<string, unknown> = {}) =>
    void lines.push(
      `${level} ${message.replaceAll(/\{(\w+)\}/g, (_, name) => String(properties[name]))}`,
    );
  const levels = { info: at("info"), warn: at("warn"), error: at("error"), fatal: at("fatal") };
  return { log: levels as unknown as Log, lines };
}
