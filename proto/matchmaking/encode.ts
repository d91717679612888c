import { create, toBinary } from "@bufbuild/protobuf";
import { MatchmakingEventSchema } from "../gen/matchmaking/v1/matchmaking_event_pb.ts";
import {
  type Payload,
  readOccurredAt,
  readText,
  readTexts,
  readType,
  readWhole,
} from "../payload.ts";
import { typeOfName } from "./event_types.ts";

/** Encodes the body of the message. The fields are those of the payload, as they were announced. */
export function encodeMatchmakingEvent(eventId: string, fields: Payload): Uint8Array {
  return toBinary(
    MatchmakingEventSchema,
    create(MatchmakingEventSchema, {
      eventId,
      eventType: readType(fields, typeOfName),
      occurredAt: readOccurredAt(fields),
      matchId: fields["match_id"] === null ? "" : readText(fields, "match_id"),
      mode: readText(fields, "mode"),
      traceId: readText(fields, "trace_id"),
      userId: readText(fields, "user_id"),
      ticketId: readText(fields, "ticket_id"),
      peerUserIds: readTexts(fields, "peer_user_ids"),
      waitedMs: readWhole(fields, "waited_ms"),
    }),
  );
}
