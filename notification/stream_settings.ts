import {
  count,
  duration,
  maxTimerMs,
  natsName,
  natsSubject,
  prefixed,
} from "@kenri/shared/process/settings.ts";
import type { z } from "zod";
import type { AdvisoryOptions, EventOptions } from "./durables.ts";

// The settings of streams and consumers. `deno task provision` reads them as well.

export const streamSettings = prefixed("notification.nats", {
  "subject": natsSubject(),
  "stream": natsName(),
  "durable": natsName(),
  "duplicate-window": duration().prefault("2m"),
  "ack-wait": duration(maxTimerMs).prefault("10s"),
  "max-deliver": count().prefault("10"),
  "advisory.subject": natsSubject().optional(),
  "advisory.stream": natsName().optional(),
  "advisory.durable": natsName().optional(),
  "terminated-advisory.subject": natsSubject().optional(),
  "terminated-advisory.stream": natsName().optional(),
  "terminated-advisory.durable": natsName().optional(),
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
