import { prefixed } from "@kenri/shared/process/settings.ts";
import {
  count,
  duration,
  maxTimerMs,
  natsName,
  natsSubject,
} from "@kenri/shared/process/setting_kinds.ts";
import { type InboxStreams, inboxStreams } from "@kenri/shared/inbox/durables.ts";
import { eventStreamSettings } from "@kenri/shared/nats/stream_settings.ts";
import type { z } from "zod";

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

export function streamsOf(settings: Settings): InboxStreams {
  const named = (kind: "advisory" | "terminated-advisory") => ({
    subject: settings[`notification.nats.${kind}.subject`],
    stream: settings[`notification.nats.${kind}.stream`],
    durable: settings[`notification.nats.${kind}.durable`],
  });
  return inboxStreams(
    {
      name: settings["notification.nats.stream"],
      subject: settings["notification.nats.subject"],
      duplicateWindowMs: settings["notification.nats.duplicate-window"],
      replicas: settings["nats.replicas"],
    },
    {
      durable: settings["notification.nats.durable"],
      ackWaitMs: settings["notification.nats.ack-wait"],
      maxDeliver: settings["notification.nats.max-deliver"],
    },
    { MAX_DELIVERIES: named("advisory"), MSG_TERMINATED: named("terminated-advisory") },
  );
}
