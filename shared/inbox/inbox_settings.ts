import type { z } from "zod";
import { eventStreamSettings, streamOf } from "../nats/stream_settings.ts";
import { count, duration, maxTimerMs, natsName, natsSubject } from "../process/setting_kinds.ts";
import { type Prefixed, prefixed, unprefixed } from "../process/settings.ts";
import { type InboxStreams, inboxStreams } from "./durables.ts";

// The settings of an inbox. A service has them once for each of its inboxes.

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

export const inboxSettings = {
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
};

type Values = z.output<z.ZodObject<typeof inboxSettings>>;

/** The streams and consumers of the inbox that the settings with this prefix describe. */
export function inboxOf<Prefix extends string>(
  prefix: Prefix,
  settings: Prefixed<Prefix, Values> & { "nats.replicas": number },
): InboxStreams {
  const own = unprefixed<Prefix, Values>(prefix, settings);
  const named = (kind: "advisory" | "terminated-advisory") => ({
    subject: own[`${kind}.subject`],
    stream: own[`${kind}.stream`],
    durable: own[`${kind}.durable`],
  });
  return inboxStreams(
    streamOf(prefix, settings),
    { durable: own["durable"], ackWaitMs: own["ack-wait"], maxDeliver: own["max-deliver"] },
    { MAX_DELIVERIES: named("advisory"), MSG_TERMINATED: named("terminated-advisory") },
  );
}
