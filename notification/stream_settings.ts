import { subjectOfChecks } from "@kenri/proto/notification/receipts.ts";
import { type InboxStreams, inboxStreams } from "@kenri/shared/inbox/durables.ts";
import { inboxOf, inboxSettings } from "@kenri/shared/inbox/inbox_settings.ts";
import type { NatsUse } from "@kenri/shared/nats/nats_use.ts";
import { flag, natsName, natsSubject } from "@kenri/shared/process/setting_kinds.ts";
import { prefixed } from "@kenri/shared/process/settings.ts";
import type { z } from "zod";

// The settings of streams and consumers. `deno task provision` reads them as well.

const pointsSettings = {
  "subject": natsSubject().prefault("points.events").describe(
    "Subject of the events of points, in the same stream",
  ),
  "durable": natsName().optional().meta({
    description: "Durable consumer of the events of points; all replicas share it",
    shownDefault: "from durable",
  }),
};

const matchmakingSettings = {
  "enabled": flag().prefault("false").describe(
    "Whether users are notified of matches and of tickets that expired",
  ),
  "stream": natsName().prefault("matchmaking-events").describe(
    "Stream of the events of matchmaking",
  ),
  "subject": natsSubject().prefault("matchmaking.events").describe(
    "Subject of the events of matchmaking",
  ),
  "durable": natsName().prefault("notification-matchmaking-consumer").describe(
    "Durable consumer of the events of matchmaking; all replicas share it",
  ),
};

export const streamSettings = {
  ...prefixed("notification.nats", inboxSettings),
  ...prefixed("notification.nats.points", pointsSettings),
  ...prefixed("notification.matchmaking", matchmakingSettings),
};

type Settings = z.output<z.ZodObject<typeof streamSettings>> & { "nats.replicas": number };

export interface NotificationStreams extends InboxStreams {
  points: InboxStreams;
  matchmaking: InboxStreams & { enabled: boolean }; // if not, nothing of it is made or read
}

/** Those from which the service consumes. */
export function inboxesIn(
  { stream, consumer, advisories, points, matchmaking }: NotificationStreams,
): InboxStreams[] {
  const always = [{ stream, consumer, advisories }, points];
  return matchmaking.enabled ? [...always, matchmaking] : always;
}

// The events of points have a consumer of their own, because replicas of earlier releases share the
// other one and would misread them. Without points the service works on a stream of an earlier
// release, which lacks their subject.
export function streamsOf(settings: Settings): NotificationStreams {
  const inbox = inboxOf("notification.nats", settings);
  const { stream, consumer } = inbox;
  const [subject] = stream.subjects;
  const pointsSubject = settings["notification.nats.points.subject"];
  const durable = settings["notification.nats.points.durable"] ?? `${consumer.durable}-points`;
  return {
    ...inbox,
    stream: { ...stream, newSubjects: [pointsSubject] },
    consumer: { ...consumer, subject },
    points: inboxStreams(
      { ...stream, subjects: [subject, pointsSubject] },
      { ...consumer, durable, subject: pointsSubject },
    ),
    matchmaking: matchmakingOf(settings, inbox),
  };
}

function matchmakingOf(
  settings: Settings,
  { stream, consumer }: InboxStreams,
): NotificationStreams["matchmaking"] {
  const subject = settings["notification.matchmaking.subject"];
  const name = settings["notification.matchmaking.stream"];
  const durable = settings["notification.matchmaking.durable"];
  return {
    enabled: settings["notification.matchmaking.enabled"],
    ...inboxStreams({ ...stream, name, subjects: [subject] }, { ...consumer, durable, subject }),
  };
}

export function natsUse(settings: Settings): NatsUse {
  const streams = streamsOf(settings);
  return {
    inboxes: inboxesIn(streams),
    answers: [subjectOfChecks(streams.stream.subjects[0])],
  };
}
