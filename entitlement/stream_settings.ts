import { prefixed } from "@kenri/shared/process/settings.ts";
import { eventStreamSettings } from "@kenri/shared/nats/stream_settings.ts";
import type { WantedStream } from "@kenri/shared/nats/streams.ts";
import type { z } from "zod";

// The stream of events, by the settings of this service. `deno task provision` reads them as well.

export const streamSettings = prefixed("entitlement.nats", eventStreamSettings);

type Settings = z.output<z.ZodObject<typeof streamSettings>> & { "nats.replicas": number };

export function streamOf(settings: Settings): WantedStream {
  return {
    name: settings["entitlement.nats.stream"],
    subjects: [settings["entitlement.nats.subject"]],
    duplicateWindowMs: settings["entitlement.nats.duplicate-window"],
    replicas: settings["nats.replicas"],
  };
}
