import { create, toBinary } from "@bufbuild/protobuf";
import { AccountEventSchema } from "../gen/account/v1/account_event_pb.ts";
import {
  type Payload,
  readOccurredAt,
  readText,
  readTexts,
  readType,
  readVersion,
  readWhole,
} from "../payload.ts";
import { typeOfName } from "./event_types.ts";

/** Encodes the body of the message. The fields are those of the payload in the outbox. */
export function encodeAccountEvent(eventId: string, fields: Payload): Uint8Array {
  return toBinary(
    AccountEventSchema,
    create(AccountEventSchema, {
      eventId,
      eventType: readType(fields, typeOfName),
      occurredAt: readOccurredAt(fields),
      userId: readText(fields, "user_id"),
      version: readVersion(fields),
      sessionEpoch: readWhole(fields, "session_epoch"),
      sessionId: fields["session_id"] === null ? "" : readText(fields, "session_id"),
      actor: readText(fields, "actor"),
      traceId: readText(fields, "trace_id"),
      accountStatus: readText(fields, "account_status"),
      roles: readTexts(fields, "roles"),
    }),
  );
}
