import { create, toBinary } from "@bufbuild/protobuf";
import { EntitlementEventSchema } from "../gen/entitlement/v1/entitlement_event_pb.ts";
import { type Payload, readOccurredAt, readText, readType, readVersion } from "../payload.ts";
import { typeOfName } from "./event_types.ts";

/** Encodes the body of the message. The fields are those of the payload in the outbox. */
export function encodeEvent(eventId: string, fields: Payload): Uint8Array {
  return toBinary(
    EntitlementEventSchema,
    create(EntitlementEventSchema, {
      eventId,
      eventType: readType(fields, typeOfName),
      occurredAt: readOccurredAt(fields),
      userId: readText(fields, "user_id"),
      stockKeepingUnit: readText(fields, "stock_keeping_unit"),
      source: readText(fields, "source"),
      sourceId: readText(fields, "source_id"),
      version: readVersion(fields),
      traceId: readText(fields, "trace_id"),
    }),
  );
}
