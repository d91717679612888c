import type { NatsUse } from "@kenri/shared/nats/nats_use.ts";
import { watermarkSubject } from "@kenri/shared/nats/watermark_subject.ts";
import { natsName, natsSubject } from "@kenri/shared/process/setting_kinds.ts";
import { prefixed } from "@kenri/shared/process/settings.ts";
import type { z } from "zod";

// The stream of the events of accounts, which belongs to the account service and is only read here.
// `deno task provision` reads these settings as well.

export const streamSettings = prefixed("gateway.nats", {
  "subject": natsSubject().prefault("account.events").describe("Subject of the events"),
  "stream": natsName().prefault("account-events").describe("Stream of the events of accounts"),
});

type Settings = z.output<z.ZodObject<typeof streamSettings>>;

export interface FeedOptions {
  stream: string;
  subject: string;
}

export function feedOf(settings: Settings): FeedOptions {
  return { stream: settings["gateway.nats.stream"], subject: settings["gateway.nats.subject"] };
}

export function natsUse(settings: Settings): NatsUse {
  const { stream, subject } = feedOf(settings);
  return { reads: [{ name: stream, subjects: [subject] }], hears: [watermarkSubject(subject)] };
}
