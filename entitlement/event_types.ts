import { encodeEvent } from "@kenri/proto/entitlement/encode.ts";
import { sealed } from "@kenri/proto/entitlement/seal.ts";
import type { EventType, EventTypes } from "@kenri/shared/outbox/event_types.ts";
import { eventTypeOf } from "./entitlement.ts";

// The types of events that this service publishes. Those of an entitlement differ only in a field.
export function eventTypes(subject: string, sealKey: string | undefined): EventTypes {
  const changed: EventType = {
    subject,
    encode: (id, payload) => sealed({ body: encodeEvent(id, payload), headers: {} }, sealKey),
  };
  return new Map(Object.values(eventTypeOf).map((name) => [name, changed]));
}
