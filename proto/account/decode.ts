import { AccountEventSchema } from "../gen/account/v1/account_event_pb.ts";
import { readBody, readEventId, readNumber, readTime, storable } from "../read_event.ts";
import { nameOf } from "./event_types.ts";

// The fields of an event under the names of the outbox payload.
export interface AccountEventFields {
  event_id: string;
  event_type: string;
  occurred_at: string;
  user_id: string;
  version: number;
  session_epoch: number;
  session_id: string | null;
  actor: string;
  trace_id: string;
  account_status: string;
  roles: string[];
}

export function decodeAccountEvent(body: Uint8Array): AccountEventFields {
  const event = readBody(AccountEventSchema, body);
  return {
    ...storable({
      event_id: readEventId(event),
      event_type: nameOf(event.eventType),
      occurred_at: readTime(event),
      user_id: event.userId,
      version: readNumber("version", event.version),
      session_epoch: readNumber("session_epoch", event.sessionEpoch),
      session_id: event.sessionId === "" ? null : event.sessionId,
      actor: event.actor,
      trace_id: event.traceId,
      account_status: event.accountStatus,
    }),
    roles: event.roles,
  };
}
