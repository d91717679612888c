import { encodeMatchmakingEvent } from "@kenri/proto/matchmaking/encode.ts";
import { eventIdOf } from "@kenri/proto/matchmaking/event_id.ts";
import { typeOfName } from "@kenri/proto/matchmaking/event_types.ts";
import type { NatsLink } from "@kenri/shared/nats/link.ts";
import type { WantedStream } from "@kenri/shared/nats/streams.ts";
import type { EventRow, EventTypes } from "@kenri/shared/outbox/event_types.ts";
import { type RelayOptions, runRelay } from "@kenri/shared/outbox/relay.ts";
import {
  type Fields,
  type StreamRow,
  streamSource,
} from "@kenri/shared/outbox/stream/stream_source.ts";
import type { Log } from "@kenri/shared/process/log.ts";
import type { Handover } from "@kenri/shared/queue/handover.ts";
import type { MakeChange } from "@kenri/shared/redis/confirmed.ts";
import type { RedisLink } from "@kenri/shared/redis/redis_link.ts";
import { keysOf, modeOfKey } from "./keys.ts";
import { countDependencyError, publishDelay } from "./metrics.ts";

export interface PublishParts {
  redis: RedisLink;
  change: MakeChange;
  link: NatsLink;
  toRelay: Handover<StreamRow>;
  log: Log;
  abandon: AbortSignal;
}

export const group = "relay";

// Publishes the events of all modes.
export async function publishEvents(
  { redis, change, ...parts }: PublishParts,
  modes: readonly string[],
  options: Omit<RelayOptions, "types">,
  stop: AbortSignal,
): Promise<void> {
  const openSource = streamSource({
    redis,
    change,
    streams: modes.map(keysOf),
    group,
    eventOf,
    observePublished: ({ claimedAt, waitedMs }, { ackedAt }) =>
      publishDelay.observe((waitedMs + ackedAt - claimedAt) / 1_000),
  });
  const types = eventTypes(options.stream);
  const observeOutage = () => countDependencyError("nats");
  await redis.connects(stop);
  await runRelay({ ...parts, openSource, observeOutage }, { ...options, types }, stop);
}

export function eventTypes({ subjects: [subject] }: Pick<WantedStream, "subjects">): EventTypes {
  const type = {
    subject,
    encode: (id: string, payload: Record<string, unknown>) => ({
      body: encodeMatchmakingEvent(id, payload),
    }),
  };
  return new Map([...typeOfName.keys()].map((name) => [name, type]));
}

// An entry as scripts/ticket.lua wrote it. The event has the same id however often it is read.
export function eventOf(fields: Fields, stream: string): Pick<EventRow, "id" | "content"> {
  const { event_type = "", match_id = null, user_id = "", ticket_id = "" } = fields;
  const { trace_id = "", traceparent = "" } = fields;
  const payload = {
    event_type,
    occurred_at: new Date(Number(fields["occurred_ms"])).toISOString(),
    match_id,
    mode: modeOfKey(stream),
    trace_id,
    user_id,
    ticket_id,
    peer_user_ids: JSON.parse(fields["peers"] ?? "[]"),
    waited_ms: Number(fields["waited_ms"]),
  };
  return {
    id: eventIdOf({ event_type, match_id, user_id, ticket_id }),
    content: { event_type, payload, traceparent: traceparent || null },
  };
}
