// The parts of the tables of accounts that the invariants compare, and the events in their stream.
import { decodeAccountEvent } from "../../../proto/account/decode.ts";
import { ask } from "../../servers/asking.ts";
import { leased } from "./points_tables.ts";
import { readMessages } from "./read_messages.ts";

interface OfUser {
  user_id: string;
}

export interface AccountTables {
  users: (OfUser & { status: string; version: number; session_epoch: number; roles: string[] })[];
  identities: (OfUser & { provider: string; subject: string })[];
  audit: (OfUser & {
    audit_id: string; // of its event
    action: string;
    version: number;
    trace_id: string;
    session_id: string | null;
  })[];
  events: (OfUser & {
    event_id: string;
    event_type: string;
    version: number;
    session_epoch: number;
    session_id: string | null;
    account_status: string;
    roles: string[];
    trace_id: string;
    order: number; // within all events of the user
    status: string;
    place: string | null; // the generation and sequence of a published event
    last_error: string | null;
    leased: boolean;
  })[];
  endedSessions: (OfUser & { session_id: string })[];
  inStream: string[]; // the event_id of each message
}

interface Source {
  ownerUrl: string;
  natsUrl: string;
  stream: string;
}

export async function readAccountTables(
  { ownerUrl, natsUrl, stream }: Source,
): Promise<AccountTables> {
  const [users, identities, audit, events, endedSessions, inStream] = await Promise.all([
    ask<AccountTables["users"][0]>(
      ownerUrl,
      `select user_id, status, version::int, session_epoch::int,
         array(select role from account_roles own where own.user_id = users.user_id order by role)
           as roles
       from users`,
    ),
    ask<AccountTables["identities"][0]>(
      ownerUrl,
      "select user_id, provider, subject from identities",
    ),
    ask<AccountTables["audit"][0]>(
      ownerUrl,
      `select audit_id, user_id, action, version::int, trace_id, detail->>'session_id' as session_id
       from audit_logs`,
    ),
    ask<AccountTables["events"][0]>(
      ownerUrl,
      `select event_id, event_type, status, last_error, ${leased},
         case when published_at is not null then stream_generation || ' ' || stream_seq end as place,
         payload->>'user_id' as user_id, payload->>'session_id' as session_id,
         (payload->>'version')::int as version, (payload->>'session_epoch')::int as session_epoch,
         payload->>'account_status' as account_status, payload->>'trace_id' as trace_id,
         array(select jsonb_array_elements_text(payload->'roles') order by 1) as roles,
         row_number() over (partition by payload->>'user_id' order by created_at)::int as order
       from outbox_events`,
    ),
    ask<AccountTables["endedSessions"][0]>(
      ownerUrl,
      "select session_id, user_id from ended_sessions",
    ),
    readMessages(natsUrl, stream, (data) => decodeAccountEvent(data).event_id),
  ]);
  return { users, identities, audit, events, endedSessions, inStream };
}
