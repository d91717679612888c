import { encodeEvent } from "@kenri/proto/entitlement/encode.ts";
import { sealed, type SealedKind } from "@kenri/proto/entitlement/seal.ts";
import { encodePointsEvent } from "@kenri/proto/points/encode.ts";
import { typeOfName as pointsTypes } from "@kenri/proto/points/event_types.ts";
import type { EventType, EventTypes } from "@kenri/shared/outbox/event_types.ts";
import type { RelayOptions } from "@kenri/shared/outbox/relay.ts";
import { relayTable, type TableParts } from "@kenri/shared/outbox/table_source.ts";
import { eventTypeOf } from "./entitlement.ts";
import { publishDelay } from "./metrics.ts";
import { outbox } from "./outbox.ts";
import type { StreamOfEvents } from "./stream_settings.ts";

export interface PublishOptions extends Omit<RelayOptions, "types"> {
  stream: StreamOfEvents;
  sealKey: string | undefined;
}

// Publishes the outbox.
export function publishEvents(
  parts: Omit<TableParts, "outbox">,
  { sealKey, ...options }: PublishOptions,
  stop: AbortSignal,
): Promise<void> {
  const observeDelay = (seconds: number) => publishDelay.observe(seconds);
  const types = eventTypes(options.stream, sealKey);
  return relayTable({ ...parts, outbox, observeDelay }, { ...options, types }, stop);
}

// The events of an entitlement differ only in one field, and so do those of a balance.
export function eventTypes(
  { subjects: [subject, pointsSubject] }: Pick<StreamOfEvents, "subjects">,
  sealKey: string | undefined,
): EventTypes {
  const type = (subject: string, encode: typeof encodeEvent, kind: SealedKind): EventType => ({
    subject,
    encode: (id, payload) => sealed({ body: encode(id, payload), headers: {} }, sealKey, kind),
  });
  const changed = type(subject, encodeEvent, "event");
  const pointed = type(pointsSubject, encodePointsEvent, "points event");
  return new Map([
    ...Object.values(eventTypeOf).map((name) => [name, changed] as const),
    ...[...pointsTypes.keys()].map((name) => [name, pointed] as const),
  ]);
}
