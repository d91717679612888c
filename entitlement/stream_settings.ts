import { subjectOfChecks } from "@kenri/proto/notification/receipts.ts";
import type { NatsUse } from "@kenri/shared/nats/nats_use.ts";
import { eventStreamSettings, streamOf } from "@kenri/shared/nats/stream_settings.ts";
import type { WantedStream } from "@kenri/shared/nats/streams.ts";
import { natsSubject } from "@kenri/shared/process/setting_kinds.ts";
import { prefixed } from "@kenri/shared/process/settings.ts";
import type { z } from "zod";

// The stream of events, by the settings of this service. `deno task provision` reads them as well.

export const streamSettings = {
  ...prefixed("entitlement.nats", eventStreamSettings),
  "entitlement.points.subject": natsSubject().prefault("points.events").describe(
    "Subject of the events of points, in the same stream",
  ),
};

type Settings = z.output<z.ZodObject<typeof streamSettings>> & { "nats.replicas": number };

export interface StreamOfEvents extends WantedStream {
  subjects: [entitlements: string, points: string];
}

export function streamOfEvents(settings: Settings): StreamOfEvents {
  const { subjects: [subject], ...stream } = streamOf("entitlement.nats", settings);
  return { ...stream, subjects: [subject, settings["entitlement.points.subject"]] };
}

export function natsUse(settings: Settings): NatsUse {
  const stream = streamOfEvents(settings);
  return { streams: [stream], asks: [subjectOfChecks(stream.subjects[0])] };
}
