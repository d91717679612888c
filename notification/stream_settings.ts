import { prefixed } from "@kenri/shared/process/settings.ts";
import {
  count,
  duration,
  maxTimerMs,
  natsName,
  natsSubject,
} from "@kenri/shared/process/setting_kinds.ts";
import { eventStreamSettings } from "@kenri/shared/nats/stream_settings.ts";
import type { z } from "zod";
import type { AdvisoryOptions, EventOptions } from "./durables.ts";

// The settings of streams and consumers. `deno task provision` reads them as well.

const shownDefault = "from stream and durable";

const advisorySettings = (kind: string) => ({
  "subject": natsSubject().optional().meta({
    description: `Subject of the ${kind} advisories`,
    shownDefault,
  }),
  "stream": natsName().optional().meta({
    description: `Stream that keeps the ${kind} advisories`,
    shownDefault,
  }),
  "durable": natsName().optional().meta({
    description: `Durable consumer of the ${kind} advisories`,
    shownDefault,
  }),
});

export const streamSettings = prefixed("notification.nats", {
  ...eventStreamSettings,
  "durable": natsName().describe("Durable consumer of the stream; all replicas share it"),
  "ack-wait": duration(maxTimerMs).prefault("10s").describe(
    "Time to acknowledge a message before it is redelivered",
  ),
  "max-deliver": count().prefault("10").describe(
    "Deliveries of a message before JetStream gives up on it",
  ),
  ...prefixed("advisory", advisorySettings("MAX_DELIVERIES")),
  ...prefixed("terminated-advisory", advisorySettings("MSG_TERMINATED")),
});

type Settings = z.output<z.ZodObject<typeof streamSettings>> & { "nats.replicas": number };

export interface StreamOptions extends EventOptions {
  advisories: AdvisoryOptions[];
}

export function streamsOf(settings: Settings): StreamOptions {
  const stream = settings["notification.nats.stream"];
  const durable = settings["notification.nats.durable"];
  const ackWaitMs = settings["notification.nats.ack-wait"];
  const common = {
    duplicateWindowMs: settings["notification.nats.duplicate-window"],
    replicas: settings["nats.replicas"],
  };
  return {
    stream: { name: stream, subject: settings["notification.nats.subject"], ...common },
    consumer: { durable, ackWaitMs, maxDeliver: settings["notification.nats.max-deliver"] },
    advisories:
      ([["advisory", "MAX_DELIVERIES"], ["terminated-advisory", "MSG_TERMINATED"]] as const)
        .map(([name, kind]) => {
          const subject = settings[`notification.nats.${name}.subject`] ??
            `$JS.EVENT.ADVISORY.CONSUMER.${kind}.${stream}.${durable}`;
          const own = `${stream}-${durable}-${kind.toLowerCase().replace("_", "-")}`;
          return {
            kind,
            stream: {
              name: settings[`notification.nats.${name}.stream`] ?? own,
              subject,
              ...common,
            },
            durable: settings[`notification.nats.${name}.durable`] ?? own,
            ackWaitMs,
            of: stream,
          };
        }),
  };
}
