// Relays in the process of the test, each with a pool and a connection of its own.
import { publishEvents, type PublishOptions } from "../../entitlement/publish_events.ts";
import type { EventRow, EventTypes } from "../../shared/outbox/event_types.ts";
import type { OutboxRow } from "../../shared/outbox/outbox_table.ts";
import { type RelayParts, runRelay } from "../../shared/outbox/relay.ts";
import type { OpenSource } from "../../shared/outbox/source.ts";
import { NatsLink } from "../../shared/nats/link.ts";
import type { WantedStream } from "../../shared/nats/streams.ts";
import type { Log } from "../../shared/process/log.ts";
import { openDatabase } from "../../shared/postgres/postgres.ts";
import { Handover } from "../../shared/queue/handover.ts";
import { type Place, pointsSubjectOf } from "../../tools/load/stage.ts";
import { type FreshPlace, freshPlaceOf } from "./places.ts";

export interface RunningRelay<Row extends EventRow = OutboxRow> extends AsyncDisposable {
  log: string[];
  toRelay: Handover<Row>;
  stop(graceMs?: number): Promise<void>; // a process that is killed has no grace
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

export type QuickOptions = Partial<typeof quick>;

export function startRelay(
  place: Omit<Place, "ownerUrl">,
  options: QuickOptions = {},
): RunningRelay {
  const database = openDatabase(place.serviceUrl, "relay");
  const stream = { ...streamOf(place), subjects: subjectsOf(place) };
  const given = { ...quick, ...options, stream };
  return startRelayOf(
    place,
    (parts, stop) =>
      publishEvents({ database, ...parts }, given, stop).finally(() => database.end()),
  );
}

/** A relay of other events, from another source. */
export function startRelayFrom<Row extends EventRow>(
  place: Pick<Place, "natsUrl" | "stream">,
  openSource: OpenSource<Row>,
  types: EventTypes,
  given: QuickOptions = {},
): RunningRelay<Row> {
  const options = { ...quick, ...given };
  const [subject = "", ...more] = new Set([...types.values()].map(({ subject }) => subject));
  const stream: WantedStream = { ...streamOf({ ...place, subject }), subjects: [subject, ...more] };
  return startRelayOf<Row>(place, (parts, stop) =>
    runRelay(
      { ...parts, openSource },
      { ...options, stream, types },
      stop,
    ));
}

function subjectsOf(place: Pick<Place, "stream" | "subject">): [string, string] {
  return [place.subject, pointsSubjectOf(place)];
}

function streamOf({ stream, subject }: Pick<Place, "stream" | "subject">): WantedStream {
  return { name: stream, subjects: [subject], duplicateWindowMs: 120_000, replicas: 1 };
}

function startRelayOf<Row extends EventRow>(
  { natsUrl }: Pick<Place, "natsUrl">,
  run: (parts: Omit<RelayParts<Row>, "openSource">, stop: AbortSignal) => Promise<void>,
): RunningRelay<Row> {
  const { log, lines } = collectingLog();
  const link = new NatsLink({ urls: natsUrl }, "relay", log);
  const toRelay = new Handover<Row>();
  const stopping = new AbortController();
  const abandon = new AbortController();
  const running = run({ link, toRelay, log, abandon: abandon.signal }, stopping.signal);
  let stopped: Promise<void> | undefined;
  const stop = (graceMs = 10_000) =>
    stopped ??= (async () => {
      stopping.abort();
      const grace = setTimeout(() => abandon.abort(), graceMs);
      await running;
      clearTimeout(grace);
      await link.close();
    })();
  return { log: lines, toRelay, stop, [Symbol.asyncDispose]: () => stop() };
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
