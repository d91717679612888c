import { subjectOfChecks } from "@kenri/proto/notification/receipts.ts";
import type { InboxStreams } from "@kenri/shared/inbox/durables.ts";
import { inboxOf, inboxSettings } from "@kenri/shared/inbox/inbox_settings.ts";
import type { NatsUse } from "@kenri/shared/nats/nats_use.ts";
import { prefixed } from "@kenri/shared/process/settings.ts";
import type { z } from "zod";

// The settings of streams and consumers. `deno task provision` reads them as well.

export const streamSettings = prefixed("notification.nats", inboxSettings);

type Settings = z.output<z.ZodObject<typeof streamSettings>> & { "nats.replicas": number };

export function streamsOf(settings: Settings): InboxStreams {
  return inboxOf("notification.nats", settings);
}

export function natsUse(settings: Settings): NatsUse {
  const inbox = streamsOf(settings);
  return { inboxes: [inbox], answers: [subjectOfChecks(inbox.stream.subjects[0])] };
}
