import { create, toBinary } from "@bufbuild/protobuf";
import { PointsEventSchema } from "../gen/points/v1/points_event_pb.ts";
import {
  type Payload,
  readOccurredAt,
  readText,
  readType,
  readVersion,
  readWhole,
} from "../payload.ts";
import { typeOfName } from "./event_types.ts";

/** Encodes the body of the message. The fields are those of the payload in the outbox. */
export function encodePointsEvent(eventId: string, fields: Payload): Uint8Array {
  return toBinary(
    PointsEventSchema,
    create(PointsEventSchema, {
      eventId,
      eventType: readType(fields, typeOfName),
      occurredAt: readOccurredAt(fields),
      userId: readText(fields, "user_id"),
      unit: readText(fields, "unit"),
      pointAmount: readWhole(fields, "point_amount"),
      balance: readWhole(fields, "balance"),
      version: readVersion(fields),
      source: readText(fields, "source"),
      sourceId: readText(fields, "source_id"),
      transactionId: readText(fields, "transaction_id"),
      reservationId: fields["reservation_id"] === null ? "" : readText(fields, "reservation_id"),
      traceId: readText(fields, "trace_id"),
    }),
  );
}
