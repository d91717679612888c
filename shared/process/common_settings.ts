import type { z } from "zod";
import type { AccessOptions } from "../access/authenticator.ts";
import { burstNeedsRate, rateOf, type RateOptions, rateSettings } from "../access/rate.ts";
import { accessOptions, accessSettings, issuerIsComplete } from "../access/settings.ts";
import { count, duration, maxTimerMs, number, prefixed, text } from "./settings.ts";
import { logSettings, type UserIds } from "./log.ts";
import type { NatsServers } from "../nats/connection.ts";
import { natsUrls } from "./server_urls.ts";
import { natsTlsIsUsed, tlsSettings, tlsSource } from "../postgres/tls.ts";

// What both services are told, under the same names.

export const commonSettings = {
  ...accessSettings,
  ...rateSettings,
  ...logSettings,
  "http.requests-at-once": count().prefault("5000"),
  "nats.url": natsUrls(),
  ...prefixed("nats", tlsSettings),
  "nats.replicas": number({ min: 1, max: 5 }).prefault("1"),
  "shutdown.grace": duration(maxTimerMs).prefault("10s"),
  "hostname": text().optional(),
};

export const commonChecks = [...natsTlsIsUsed(), issuerIsComplete, burstNeedsRate];

export interface CommonConfig {
  nats: Required<NatsServers>;
  access: AccessOptions;
  rate: RateOptions | undefined;
  logUserIds: UserIds;
  shutdownGraceMs: number;
}

export function commonConfig(
  settings: z.output<z.ZodObject<typeof commonSettings>>,
): CommonConfig {
  return {
    nats: { urls: settings["nats.url"], tls: tlsSource("nats", settings) },
    access: accessOptions(settings),
    rate: rateOf(settings),
    logUserIds: settings["log.user-ids"],
    shutdownGraceMs: settings["shutdown.grace"],
  };
}
