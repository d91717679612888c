import type { Service } from "@kenri/shared/process/program.ts";
import { schemaVersion, settings } from "./derived.ts";
import { looks } from "./operators/looks.ts";

export const program: Service = {
  name: "notification",
  port: 8081,
  database: { schemaVersion },
  usesNats: true,
  servers: ["NOTIFICATION_SENDER_URL"],
  dev: {
    settings: {
      NOTIFICATION_NATS_STREAM: "entitlement-events",
      NOTIFICATION_NATS_SUBJECT: "entitlement.events",
      NOTIFICATION_NATS_DURABLE: "notification-entitlement-consumer",
      NOTIFICATION_MATCHMAKING_ENABLED: "true",
    },
    urls: { NOTIFICATION_SENDER_URL: "sender" },
    page: "/debug/notification/inbox/ann",
    tryOut: (url) => `curl ${url}/debug/notification/inbox/ann`,
  },
  settings,
  looks,
};
