import { encodeEvent } from "@kenri/proto/entitlement/encode.ts";
import { sealed } from "@kenri/proto/entitlement/seal.ts";
import type { EventType, EventTypes } from "@kenri/shared/outbox/event_types.ts";
import type { OutboxRow } from "@kenri/shared/outbox/outbox_table.ts";
import { type RelayOptions, type RelayParts, runRelay } from "@kenri/shared/outbox/relay.ts";
import { tableSource } from "@kenri/shared/outbox/table_source.ts";
import type { Database } from "@kenri/shared/postgres/postgres.ts";
import { eventTypeOf } from "./entitlement.ts";
import { publishDelay } from "./metrics.ts";
import { outbox } from "./outbox.ts";

export interface PublishParts extends Omit<RelayParts<OutboxRow>, "openSource"> {
  database: Database;
}

export interface PublishOptions extends Omit<RelayOptions, "types"> {
  sealKey: string | undefined;
}

// Publishes the outbox.
export function publishEvents(
  { database, ...parts }: PublishParts,
  { sealKey, ...options }: PublishOptions,
  stop: AbortSignal,
): Promise<void> {
  const openSource = tableSource(database, outbox, (seconds) => publishDelay.observe(seconds));
  const types = eventTypes(options.stream.subjects[0], sealKey);
  return runRelay({ ...parts, openSource }, { ...options, types }, stop);
}

// The events of an entitlement differ only in one field.
export function eventTypes(subject: string, sealKey: string | undefined): EventTypes {
  const changed: EventType = {
    subject,
    encode: (id, payload) => sealed({ body: encodeEvent(id, payload), headers: {} }, sealKey),
  };
  return new Map(Object.values(eventTypeOf).map((name) => [name, changed]));
}
