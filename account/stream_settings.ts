import type { NatsUse } from "@kenri/shared/nats/nats_use.ts";
import { eventStreamSettingsOf, streamOf } from "@kenri/shared/nats/stream_settings.ts";
import type { WantedStream } from "@kenri/shared/nats/streams.ts";
import { watermarkSubject } from "@kenri/shared/nats/watermark_subject.ts";
import { prefixed } from "@kenri/shared/process/settings.ts";
import type { z } from "zod";

// The stream of events, by the settings of this service. `deno task provision` reads them as well.

export const streamSettings = prefixed(
  "account.nats",
  eventStreamSettingsOf({ subject: "account.events", stream: "account-events" }),
);

type Settings = z.output<z.ZodObject<typeof streamSettings>> & { "nats.replicas": number };

export function streamOfEvents(settings: Settings): WantedStream {
  return streamOf("account.nats", settings);
}

export function natsUse(settings: Settings): NatsUse {
  const stream = streamOfEvents(settings);
  return { streams: [stream], signals: stream.subjects.map(watermarkSubject) };
}
