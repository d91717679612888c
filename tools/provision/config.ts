import {
  streamOf,
  streamSettings as entitlementSettings,
} from "../../entitlement/stream_settings.ts";
import {
  streamSettings as notificationSettings,
  streamsOf,
} from "../../notification/stream_settings.ts";
import type { InboxStreams } from "../../shared/inbox/durables.ts";
import { number } from "../../shared/process/setting_kinds.ts";
import { environmentName } from "../../shared/process/program.ts";
import { parseSettings, prefixed } from "../../shared/process/settings.ts";
import type { NatsServers } from "../../shared/nats/connection.ts";
import { natsUrls } from "../../shared/process/server_urls.ts";
import type { WantedStream } from "../../shared/nats/streams.ts";
import { natsTlsIsUsed, tlsSettings, tlsSource } from "../../shared/postgres/tls.ts";
import { z } from "zod";

type Values = Record<string, unknown>;

const urlIsThere = z.refine<Values>(
  (values) => (values["nats.provision.url"] ?? values["nats.url"]) !== undefined,
  { path: ["nats.provision.url"], message: "is required, or NATS_URL", when: () => true },
);

// Both services verify the stream, so one of them would not start.
const bothWantTheSame = (["subject", "duplicate-window"] as const).map((setting) => {
  const [one, other] = [`entitlement.nats.${setting}`, `notification.nats.${setting}`];
  return z.refine<Values>(
    (values) =>
      values["entitlement.nats.stream"] !== values["notification.nats.stream"] ||
      values[one] === values[other],
    {
      path: [other],
      message: `must be that of ${environmentName(one)}, because both are about one stream`,
      when: () => true,
    },
  );
});

export const schema = z.object({
  "nats.url": natsUrls().optional(),
  "nats.provision.url": natsUrls().optional().meta({
    description: "NATS user that may make streams; only `deno task provision` reads it",
    shownDefault: "`nats.url`",
  }),
  "nats.replicas": number({ min: 1, max: 5 }).prefault("1"),
  ...prefixed("nats", tlsSettings),
  ...entitlementSettings,
  ...notificationSettings,
}).check(
  urlIsThere,
  ...natsTlsIsUsed("nats.provision.url"),
  ...natsTlsIsUsed(),
  ...bothWantTheSame,
);

export interface ProvisionConfig {
  nats: Required<NatsServers>;
  published: WantedStream; // as the entitlement service wants it
  consumed: InboxStreams; // and the notification service
}

export function readConfig(
  read: (name: string) => string | undefined = (name) => Deno.env.get(name),
): ProvisionConfig {
  const settings = parseSettings(schema, read);
  const urls = settings["nats.provision.url"] ?? settings["nats.url"] ?? "";
  return {
    nats: { urls, tls: tlsSource("nats", settings) },
    published: streamOf(settings),
    consumed: streamsOf(settings),
  };
}
