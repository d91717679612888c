// What Redis and the stream know of tickets and matches, as far as the invariants compare it.
import { modeOfKey } from "../../../matchmaking/keys.ts";
import { eventOf } from "../../../matchmaking/publish_events.ts";
import { decodeMatchmakingEvent } from "../../../proto/matchmaking/decode.ts";
import { redisCommand } from "../../servers/redis_client.ts";
import { readMessages } from "./read_messages.ts";

export interface TicketRow {
  ticket_id: string;
  user_id: string;
  mode: string;
  status: string;
  match_id: string | null;
  peers: string[];
}

export interface MatchEvent {
  event_id: string;
  event_type: string;
  match_id: string | null;
  user_id: string;
  ticket_id: string;
  peer_user_ids: string[];
}

/** What one Redis holds. */
export interface MatchStore {
  tickets: TicketRow[];
  unpublished: MatchEvent[];
  dead: MatchEvent[]; // could not be published
  queued: number; // places in queues, and in the list of those that will expire
}

/** What one stream holds, in its order. */
export interface StoredMatchEvent extends MatchEvent {
  sequence: number;
}

/** All in one step, because it goes on while it is read. */
const readAll = `
  local function each(pattern, read)
    local found = {}
    for _, key in ipairs(redis.call('KEYS', 'mm:{*}:' .. pattern)) do
      found[#found + 1] = { key, read(key) }
    end
    return found
  end
  local function fields(key) return redis.call('HGETALL', key) end
  local function entries(key) return redis.call('XRANGE', key, '-', '+') end
  local function places(key) return redis.call('ZCARD', key) end
  return { each('ticket:*', fields), each('events', entries), each('dead', entries),
    each('queue', places), each('queue:*', places), each('expiring', places) }`;

type Keyed<Value> = [key: string, value: Value][];
type Entry = [id: string, fields: string[]];
type Found = [Keyed<string[]>, Keyed<Entry[]>, Keyed<Entry[]>, ...Keyed<number>[]];

export async function readMatchStore(redisUrl: string): Promise<MatchStore> {
  const found = await redisCommand(redisUrl, "EVAL", readAll, 0);
  const [tickets, events, dead, ...places] = found as Found;
  return {
    tickets: tickets.map(([key, fields]) => ticketOf(key, recordOf(fields))),
    unpublished: eventsIn(events),
    dead: eventsIn(dead),
    queued: places.flat().reduce((sum, [, count]) => sum + count, 0),
  };
}

function eventsIn(streams: Keyed<Entry[]>): MatchEvent[] {
  return streams.flatMap(([key, entries]) =>
    entries.map(([, fields]) => eventIn(recordOf(fields), key))
  );
}

function ticketOf(key: string, fields: Record<string, string>): TicketRow {
  const { user_id = "", status = "", match_id = null, peers = "[]" } = fields;
  const ticket_id = key.split(":ticket:")[1] ?? "";
  return { ticket_id, user_id, mode: modeOfKey(key), status, match_id, peers: JSON.parse(peers) };
}

function eventIn(fields: Record<string, string>, key: string): MatchEvent {
  const { id, content } = eventOf(fields, key);
  return partOf({ ...content.payload as unknown as MatchEvent, event_id: id });
}

function recordOf(list: string[]): Record<string, string> {
  const pairs = list.flatMap((name, at) => at % 2 === 0 ? [[name, list[at + 1] ?? ""]] : []);
  return Object.fromEntries(pairs);
}

const partOf = (
  { event_id, event_type, match_id, user_id, ticket_id, peer_user_ids }: MatchEvent,
): MatchEvent => ({ event_id, event_type, match_id, user_id, ticket_id, peer_user_ids });

export async function readMatchEvents(
  natsUrl: string,
  stream: string,
): Promise<StoredMatchEvent[]> {
  return await readMessages(natsUrl, stream, (data, sequence) => ({
    ...partOf(decodeMatchmakingEvent(data)),
    sequence,
  }));
}
