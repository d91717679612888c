import type { z } from "zod";
import { duration, natsName, natsSubject } from "../process/setting_kinds.ts";
import { type Prefixed, unprefixed } from "../process/settings.ts";
import type { WantedStream } from "./streams.ts";

const meanings = { subject: "Subject of the events", stream: "Stream of the events" };

// Each service that publishes or consumes events has these, under its own name.
export const eventStreamSettings = {
  "subject": natsSubject().describe(meanings.subject),
  "stream": natsName().describe(meanings.stream),
  "duplicate-window": duration().prefault("2m").describe(
    "How long JetStream itself removes duplicates",
  ),
};

/** The same with names that need not be set. */
// deno-lint-ignore explicit-module-boundary-types
export function eventStreamSettingsOf(usual: { subject: string; stream: string }) {
  return {
    ...eventStreamSettings,
    "subject": natsSubject().prefault(usual.subject).describe(meanings.subject),
    "stream": natsName().prefault(usual.stream).describe(meanings.stream),
  };
}

type Values = z.output<z.ZodObject<typeof eventStreamSettings>>;

/** The stream that the settings with this prefix describe. */
export function streamOf<Prefix extends string>(
  prefix: Prefix,
  settings: Prefixed<Prefix, Values> & { "nats.replicas": number },
): WantedStream {
  const own = unprefixed<Prefix, Values>(prefix, settings);
  return {
    name: own["stream"],
    subjects: [own["subject"]],
    duplicateWindowMs: own["duplicate-window"],
    replicas: settings["nats.replicas"],
  };
}
