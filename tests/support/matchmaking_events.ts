// Events of matchmaking as the matchmaking service publishes them, and the notification service that
// reads them.
import type { MatchmakingEventFields } from "../../proto/matchmaking/decode.ts";
import { encodeMatchmakingEvent } from "../../proto/matchmaking/encode.ts";
import { eventIdOf } from "../../proto/matchmaking/event_id.ts";
import type { Place } from "../../tools/load/stage.ts";
import type { ServiceProcess, Settings } from "../../tools/servers/service_process.ts";
import { until } from "../../tools/servers/wait.ts";
import { type Message, publish } from "./events.ts";
import { consumerInfo, startNotification } from "./notification.ts";

export const matchmakingDurable = "notifications-matchmaking";

/** The stream and the subject of the events of matchmaking, beside those of the place. */
export function matchmakingPlace<Found extends Pick<Place, "stream" | "subject">>(
  place: Found,
): Found {
  const stream = `${place.stream}-matchmaking`;
  return { ...place, stream, subject: `${stream}.events` };
}

export function matchmakingSettings(place: Pick<Place, "stream" | "subject">): Settings {
  const { stream, subject } = matchmakingPlace(place);
  return {
    NOTIFICATION_MATCHMAKING_ENABLED: "true",
    NOTIFICATION_MATCHMAKING_STREAM: stream,
    NOTIFICATION_MATCHMAKING_SUBJECT: subject,
    NOTIFICATION_MATCHMAKING_DURABLE: matchmakingDurable,
  };
}

/** Starts one replica, and waits until it consumes events of matchmaking as well. */
export async function startWithMatchmaking(
  place: Place,
  more: Settings = {},
): Promise<ServiceProcess> {
  const service = await startNotification(place, { ...matchmakingSettings(place), ...more });
  await until("it consumes", () => matchmakingConsumer(place).then(() => true, () => false));
  return service;
}

export const matchmakingConsumer = (place: Place): ReturnType<typeof consumerInfo> =>
  consumerInfo(matchmakingPlace(place), matchmakingDurable);

export function matchmakingEventOf(
  fields: Partial<MatchmakingEventFields> = {},
): MatchmakingEventFields {
  const event = {
    event_type: "MatchFound",
    occurred_at: "2026-01-02T03:04:05.678901Z",
    mode: "rank",
    trace_id: "0af7651916cd43dd8448eb211c80319c",
    user_id: "ann",
    ticket_id: `rank-${crypto.randomUUID()}`,
    waited_ms: 1_500,
    ...fields,
  };
  const isMatch = event.event_type === "MatchFound";
  const matched = {
    match_id: isMatch ? crypto.randomUUID() as string : null,
    peer_user_ids: isMatch ? ["bob"] : [],
    ...event,
  };
  return { event_id: eventIdOf(matched), ...matched };
}

export function matchmakingMessageOf(event: MatchmakingEventFields): Message {
  const headers = { "Nats-Msg-Id": event.event_id, "event_type": event.event_type };
  return { body: encodeMatchmakingEvent(event.event_id, event), headers };
}

export function publishMatchmaking(
  place: Pick<Place, "natsUrl" | "stream" | "subject">,
  messages: Message[],
): Promise<number[]> {
  return publish(place.natsUrl, matchmakingPlace(place).subject, messages);
}
