import type { NatsUse } from "@kenri/shared/nats/nats_use.ts";
import { eventStreamSettingsOf, streamOf } from "@kenri/shared/nats/stream_settings.ts";
import type { WantedStream } from "@kenri/shared/nats/streams.ts";
import { prefixed } from "@kenri/shared/process/settings.ts";
import type { z } from "zod";

// The stream of events, by the settings of this service. `deno task provision` reads them as well.

export const streamSettings = prefixed(
  "matchmaking.nats",
  eventStreamSettingsOf({ subject: "matchmaking.events", stream: "matchmaking-events" }),
);

type Settings = z.output<z.ZodObject<typeof streamSettings>> & { "nats.replicas": number };

export function streamOfEvents(settings: Settings): WantedStream {
  return streamOf("matchmaking.nats", settings);
}

export function natsUse(settings: Settings): NatsUse {
  return { streams: [streamOfEvents(settings)] };
}
