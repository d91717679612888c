import { encodeEvent } from "@kenri/proto/entitlement/encode.ts";
import { sealed } from "@kenri/proto/entitlement/seal.ts";
import type { EventType, EventTypes } from "@kenri/shared/outbox/event_types.ts";
import type { RelayOptions } from "@kenri/shared/outbox/relay.ts";
import { relayTable, type TableParts } from "@kenri/shared/outbox/table_source.ts";
import { eventTypeOf } from "./entitlement.ts";
import { publishDelay } from "./metrics.ts";
import { outbox } from "./outbox.ts";

export interface PublishOptions extends Omit<RelayOptions, "types"> {
  sealKey: string | undefined;
}

// Publishes the outbox.
export function publishEvents(
  parts: Omit<TableParts, "outbox">,
  { sealKey, ...options }: PublishOptions,
  stop: AbortSignal,
): Promise<void> {
  const observeDelay = (seconds: number) => publishDelay.observe(seconds);
  const types = eventTypes(options.stream.subjects[0], sealKey);
  return relayTable({ ...parts, outbox, observeDelay }, { ...options, types }, stop);
}

// The events of an entitlement differ only in one field.
export function eventTypes(subject: string, sealKey: string | undefined): EventTypes {
  const changed: EventType = {
    subject,
    encode: (id, payload) => sealed({ body: encodeEvent(id, payload), headers: {} }, sealKey),
  };
  return new Map(Object.values(eventTypeOf).map((name) => [name, changed]));
}
